"""The source's options about keys and values: formats, schemas, and what does not decode."""

from dataclasses import dataclass
from typing import Final, cast

import pyarrow as pa

from moldau.pipelines.connector.options import Options
from moldau.pipelines.decoding.batches import (
    AS_THEY_CAME,
    ON_ERROR,
    WITH_REASONS,
    OnDecodingError,
    decode_batch,
)
from moldau.pipelines.decoding.decoder import Decoder, SchemaError
from moldau.pipelines.decoding.epoch_decoder import EpochDecoder, check_epoch
from moldau.pipelines.decoding.epochs import UNITS
from moldau.pipelines.decoding.formats import FORMATS, make_decoder
from moldau.pipelines.decoding.framing import HEADERS
from moldau.pipelines.errors import OptionError

# What formats can be told, beside their names.
_DETAILS: Final = {
    "schema": ("avro", "protobuf"),
    "writerSchema": ("avro",),
    "message": ("protobuf",),
    "header": ("avro", "protobuf"),
    "epoch": ("long", "avro", "protobuf"),
}


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a source's records are decoded. The driver makes it, and tasks get it whole."""

    key: Decoder | None
    value: Decoder | None
    on_error: OnDecodingError

    @property
    def has_reasons(self) -> bool:
        """Whether there is a further column, which says what is wrong with a record."""
        return self.on_error in WITH_REASONS

    @property
    def arrow_types(self) -> dict[str, pa.DataType]:
        """The types of the columns that are decoded."""
        decoders = {"key": self.key, "value": self.value}
        return {
            name: decoder.arrow_type
            for name, decoder in decoders.items()
            if decoder is not None and self.on_error not in AS_THEY_CAME
        }

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with its keys and values decoded, or what of it does not decode."""
        if self.key is None and self.value is None and not self.has_reasons:
            return batch
        return decode_batch(batch, self.key, self.value, self.on_error)


def read_decoding(options: Options) -> Decoding:
    """Return what `key.format`, `value.format` and their companions say."""
    on_error = options.choice("decodeErrors", ON_ERROR, "fail")
    return Decoding(
        _read_decoder(options, "key"),
        _read_decoder(options, "value"),
        cast("OnDecodingError", on_error),
    )


def _read_decoder(options: Options, column: str) -> Decoder | None:
    name = options.choice(f"{column}.format", (*FORMATS, "json"), "raw")
    if name == "json":
        raise OptionError(
            f"option {column}.format=json: Spark itself decodes JSON; leave the option out and use "
            f"moldau.pipelines.decoding.json_columns.decode_json"
        )
    details = {
        detail: options.text(f"{column}.{detail}")
        for detail in _DETAILS
        if f"{column}.{detail}" in options
    }
    for detail in details:
        if name not in _DETAILS[detail]:
            raise OptionError(
                f"option {column}.{detail}: {column}.format={name} has none; "
                f"give {column}.format, or leave it out"
            )
    header = options.choice(f"{column}.header", HEADERS, "auto")
    if name == "raw":
        return None
    try:
        decoder = make_decoder(
            name,
            details.get("schema"),
            writer_schema=details.get("writerSchema"),
            message=details.get("message"),
            header=header,
        )
    except SchemaError as error:
        raise OptionError(f"options {column}.format={name}, {column}.schema: {error}") from error
    epoch = details.get("epoch")
    return decoder if epoch is None else _with_epoch(column, decoder, epoch)


def _with_epoch(column: str, decoder: Decoder, text: str) -> Decoder:
    """Return a decoder that makes a time of a number: `ms` of the value, `at ms` of a field."""
    field, _, unit = text.rpartition(" ")
    if unit not in UNITS:
        raise OptionError(
            f"option {column}.epoch={text}: a unit is wanted ({', '.join(UNITS)}), with the name "
            "of a field before it where the value has fields"
        )
    try:
        check_epoch(decoder, field or None)
    except SchemaError as error:
        raise OptionError(f"option {column}.epoch={text}: {error}") from None
    return EpochDecoder(decoder, unit, field or None)
