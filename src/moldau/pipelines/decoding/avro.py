"""Avro: the writer's schema says what the bytes are, the reader's what is wanted of them."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import expand_schema

from moldau.pipelines.decoding.avro_types import (
    arrow_type,
    check_lengths,
    settle_defaults,
    without_times,
)
from moldau.pipelines.decoding.decoder import Decoded, SchemaError, decode_rows, in_one_line
from moldau.pipelines.decoding.framing import HEADER_BYTES, find_schema_id


class AvroDecoder:
    """Values of one schema, written with the same or with one that it can be read from.

    `header` says whether Confluent's is before each value. With `auto` it is looked for: a value
    that decodes behind five bytes of which the first is zero has one. An Avro value can begin with
    a zero by itself, so whoever knows says `confluent` or `none`.
    """

    def __init__(self, schema: str, writer_schema: str | None = None, header: str = "auto") -> None:
        self._arguments = (schema, writer_schema, header)
        self._read_row: Callable[[bytes], Any] = {
            "auto": self._read_either,
            "confluent": self._read_behind_header,
            "none": self._read,
        }[header]
        expanded, reader = _parse(schema)
        self.arrow_type = arrow_type(expanded, millis="us")
        self._stored_type = arrow_type(expanded, millis="ms")
        settle_defaults(reader, expanded)
        written, self._writer = (expanded, reader) if not writer_schema else _parse(writer_schema)
        check_lengths(written)
        self._reader = reader if writer_schema else None

    def __reduce__(self) -> tuple[type["AvroDecoder"], tuple[str, str | None, str]]:
        return AvroDecoder, self._arguments

    def decode(self, column: pa.Array) -> Decoded:
        """Return the values of all rows."""
        return decode_rows(column, self._read_row, self._build)

    def _read(self, data: bytes, start: int = 0) -> Any:
        source = BytesIO(data)
        source.seek(start)
        value = schemaless_reader(source, self._writer, self._reader)
        left = len(data) - source.tell()
        if left:
            raise ValueError(f"{left} bytes are left over: it was written with another schema")
        return value

    def _read_behind_header(self, data: bytes) -> Any:
        schema_id = find_schema_id(data)
        if schema_id is None:
            raise ValueError("it does not begin with a zero and a schema's id")
        try:
            return self._read(data, HEADER_BYTES)
        except Exception as error:
            raise ValueError(f"with schema id {schema_id}: {in_one_line(error)}") from error

    def _read_either(self, data: bytes) -> Any:
        if find_schema_id(data) is None:
            return self._read(data)
        try:
            return self._read_behind_header(data)
        except ValueError:
            with suppress(Exception):
                return self._read(data)
            raise

    def _build(self, rows: Sequence[Any]) -> pa.Array:
        stored = pa.array(rows, self._stored_type)
        return stored if self._stored_type == self.arrow_type else stored.cast(self.arrow_type)


def _parse(text: str) -> tuple[Any, Any]:
    """Return a schema with all names resolved, and as the codec wants it."""
    try:
        schema = json.loads(text)
        return expand_schema(schema), parse_schema(without_times(schema))
    except Exception as error:
        raise SchemaError(f"this is not an Avro schema: {in_one_line(error)}") from error
