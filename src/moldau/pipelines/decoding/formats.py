"""Which format is decoded by whom."""

from pathlib import Path
from typing import Final

from moldau.pipelines.decoding.decoder import Decoder, SchemaError
from moldau.pipelines.decoding.plain import NUMBERS, RawDecoder, StringDecoder

FORMATS: Final = ("raw", "string", *NUMBERS, "avro", "protobuf")


def make_decoder(
    name: str,
    schema: str | None = None,
    *,
    writer_schema: str | None = None,
    message: str | None = None,
    header: str = "auto",
) -> Decoder:
    """Return the decoder of a format.

    `schema` is a schema's JSON or an .avsc file for Avro, the file of a descriptor set for Protobuf
    with the name of a `message` in it. Files are read here and now, on the driver.
    """
    # Every process of a query reads options, and few of them are about these two.
    match name:
        case "avro":
            from moldau.pipelines.decoding.avro import AvroDecoder  # noqa: PLC0415

            written = _avro_text(writer_schema) if writer_schema else None
            return AvroDecoder(_avro_text(schema), written, header)
        case "protobuf":
            if not message:
                raise SchemaError(
                    "Protobuf needs the name of a message: add key.message or value.message"
                )
            from moldau.pipelines.decoding.protobuf import ProtobufDecoder  # noqa: PLC0415

            return ProtobufDecoder(_read_file(schema), message, header)
        case "raw":
            return RawDecoder()
        case "string":
            return StringDecoder()
        case _ if name in NUMBERS:
            return NUMBERS[name]
        case _:
            raise SchemaError(f"there is no format {name}: {', '.join(FORMATS)} are there")


def _avro_text(schema: str | None) -> str:
    if schema and schema.lstrip().startswith(("{", "[", '"')):
        return schema
    return _read_file(schema).decode(errors="replace")


def _read_file(path: str | None) -> bytes:
    if not path:
        raise SchemaError("a schema is missing")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SchemaError(f"cannot read {path}: {error.strerror}") from None
