"""The table-driven message codec: plans compiled from declarations, read and written in C."""

from typing import Any, final

from moldau.protocol.schema import Buffer, Struct

@final
class Plan:
    """One version of one message, compiled from the class's fields."""

    def __init__(self, cls: type[Struct], version: int, *, flexible: bool) -> None: ...
    def decode(self, data: Buffer) -> Any:
        """Decode the whole of `data`; `ProtocolError` on malformed or trailing bytes."""
    def decode_from(self, data: Buffer, position: int = 0) -> tuple[Any, int]:
        """Decode from `position`; return the message and the position after it."""
    def encode(self, message: Struct) -> bytes:
        """Encode to one piece; `ProtocolError` names the field whose value does not fit."""
    def encode_chunks(self, message: Struct) -> list[Buffer]:
        """Encode to pieces that follow each other; large `records` are passed by reference."""

def encode_frame(header_plan: Plan, header: Struct, plan: Plan, message: Struct) -> list[Buffer]:
    """Encode a whole frame, with its size in front: header, then message, in pieces."""
