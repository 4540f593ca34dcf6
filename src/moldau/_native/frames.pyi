"""The request-frame kernel: split a receive buffer into requests, pick Produce requests apart and
answer the plain ones.
"""

from collections.abc import Mapping
from typing import final

Buffer = bytes | bytearray | memoryview

@final
class Frame:
    """One request: its place in the buffer, without the four bytes of its size, and its header."""

    start: int
    body: int  # where the header ends
    end: int
    api_key: int
    api_version: int
    correlation_id: int
    known: bool  # else the client id was not read, and `body` follows the correlation id
    client_id: str | None

@final
class FrameSplitter:
    """Splits what was received into request frames; one serves all connections.

    `flexible_since` has the first flexible version of every API that is served.
    """

    def __init__(self, flexible_since: Mapping[int, int]) -> None: ...
    def split(
        self,
        data: Buffer,
        start: int,
        end: int,
        *,
        frame_bytes_max: int,
        frames_max: int = 256,
    ) -> tuple[list[Frame], int]:
        """Return the whole frames in `data[start:end]`, and the position behind them.

        `ProtocolError` on a size that is negative or over `frame_bytes_max`, and on a malformed
        header, as soon as such a frame is the first: what came before it is returned by itself.
        """

@final
class ProducePartition:
    """The records for one partition, as a place in the buffer; -1 twice when they are null."""

    index: int
    start: int
    end: int

    @property
    def is_null(self) -> bool: ...

@final
class ProduceTopic:
    """A topic of a Produce request: by name, from v13 by id."""

    name: str | None
    topic_id: bytes | None
    partitions: list[ProducePartition]

@final
class Produce:
    """A Produce request, v0 to v13, its records left where they are."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]

def parse_produce(data: Buffer, frame: Frame) -> Produce:
    """Parse the frame's body; `ProtocolError` when it is malformed or has bytes left over."""

def encode_produced(
    version: int,
    correlation_id: int,
    topic: ProduceTopic,
    base_offset: int,
    append_time_ms: int,
    log_start: int,
) -> bytes:
    """Encode the answer, a whole frame, to a request of this topic alone whose one batch is stored.

    The general codec does the same, and takes ten times as long: nearly all answers are like this.
    """
