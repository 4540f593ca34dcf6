"""The source's options about keys and values: formats, schemas, and what does not decode."""

from dataclasses import dataclass
from typing import Final, cast

import pyarrow as pa

from moldau.pipelines.connector.options import Options
from moldau.pipelines.decoding.batches import ON_ERROR, OnError, decode_batch
from moldau.pipelines.decoding.decoder import Decoder, SchemaError
from moldau.pipelines.decoding.formats import FORMATS, make_decoder
from moldau.pipelines.decoding.framing import HEADERS
from moldau.pipelines.errors import OptionError

# What a format can be told, beside its name.
_DETAILS: Final = {
    "avro": ("schema", "writerSchema", "header"),
    "protobuf": ("schema", "message", "header"),
}


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a source's records are decoded. The driver makes it, and tasks get it whole."""

    key: Decoder | None
    value: Decoder | None
    on_error: OnError

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with its keys and values decoded, or what of it does not decode."""
        return decode_batch(batch, self.key, self.value, self.on_error)


def read_decoding(options: Options) -> Decoding:
    """Return what `key.format`, `value.format` and their companions say."""
    on_error = options.choice("decodeErrors", ON_ERROR, "fail")
    return Decoding(
        _read_decoder(options, "key"), _read_decoder(options, "value"), cast("OnError", on_error)
    )


def _read_decoder(options: Options, column: str) -> Decoder | None:
    name = options.choice(f"{column}.format", (*FORMATS, "json"), "raw")
    if name == "json":
        raise OptionError(
            f"option {column}.format=json: Spark itself decodes JSON; leave the option out and use "
            f"moldau.pipelines.decoding.json_columns.decode_json"
        )
    details = _DETAILS.get(name, ())
    for detail in ("schema", "writerSchema", "message"):
        if detail not in details and f"{column}.{detail}" in options:
            raise OptionError(
                f"option {column}.{detail}: {column}.format={name} has none; "
                f"give {column}.format, or leave it out"
            )
    try:
        return (
            None
            if name == "raw"
            else make_decoder(
                name,
                options.text(f"{column}.schema"),
                writer_schema=options.text(f"{column}.writerSchema"),
                message=options.text(f"{column}.message"),
                header=_read_header(options, column) if "header" in details else "auto",
            )
        )
    except SchemaError as error:
        raise OptionError(f"options {column}.format={name}, {column}.schema: {error}") from error


def _read_header(options: Options, column: str) -> str:
    return options.choice(f"{column}.header", HEADERS, "auto")
