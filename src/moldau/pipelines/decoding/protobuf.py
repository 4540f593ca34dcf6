"""Protobuf: a message of a descriptor set, as `protoc --descriptor_set_out` writes it."""

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from moldau.pipelines.decoding.decoder import Decoded, SchemaError, decode_rows, in_one_line
from moldau.pipelines.decoding.framing import find_schema_id, skip_message_indexes
from moldau.pipelines.decoding.protobuf_columns import message_plan


class ProtobufDecoder:
    """Messages of one type. What the schema does not have is skipped, what is missing is null.

    Where the schema does not tell what is missing from a default, as for most fields in proto3,
    what is missing is the default.
    """

    def __init__(self, descriptors: bytes, message: str, header: str = "auto") -> None:
        self._arguments = (descriptors, message, header)
        self._header = header
        self._class = _message_class(descriptors, message)
        plan = message_plan(self._class.DESCRIPTOR)
        self.arrow_type = plan.arrow_type
        self._build = plan.build

    def __reduce__(self) -> tuple[type["ProtobufDecoder"], tuple[bytes, str, str]]:
        return ProtobufDecoder, self._arguments

    def decode(self, column: pa.Array) -> Decoded:
        """Return the messages of all rows."""
        return decode_rows(column, self._read, self._build)

    def _read(self, data: bytes) -> Message:
        # No message begins with a zero, which would be a field of number 0: nothing to guess.
        schema_id = None if self._header == "none" else find_schema_id(data)
        if schema_id is None:
            if self._header == "confluent":
                raise ValueError("it does not begin with a zero and a schema's id")
            return self._class.FromString(data)
        try:
            return self._class.FromString(data[skip_message_indexes(data) :])
        except Exception as error:
            raise ValueError(f"with schema id {schema_id}: {in_one_line(error)}") from error


def _message_class(descriptors: bytes, message: str) -> Any:
    pool = DescriptorPool()
    names = []
    try:
        for file in FileDescriptorSet.FromString(descriptors).file:
            pool.Add(file)
            names += [f"{file.package}.{each.name}".lstrip(".") for each in file.message_type]
    except Exception as error:
        raise SchemaError(
            f"this is not a descriptor set: {in_one_line(error)}; make it by "
            f"protoc --include_imports --descriptor_set_out=FILE"
        ) from error
    try:
        return GetMessageClass(pool.FindMessageTypeByName(message))
    except KeyError:
        raise SchemaError(
            f"there is no message {message}: the descriptor set has {', '.join(names)}"
        ) from None
