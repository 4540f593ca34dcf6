"""Produce v0-v13. v3 batches of format 2; v9 flexible; v10 tells of a new leader; v13 topic ids.

Below v3 the older record formats are turned into batches. From v12 on a transaction's partitions
are added to it by writing to them (KIP-890).
"""

from moldau._native.frames import Frame, parse_produce
from moldau.broker.append_request import AppendRequest
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.transactional_append import TransactionalAppend
from moldau.log.validation import Writable


def handle_produce(broker: Broker, call: Call, data: Writable, frame: Frame) -> None:
    """Append records; acknowledge them when they are committed.

    `data` must not change before the turn's end. `ProtocolError` if the request is malformed.
    """
    produce = parse_produce(data, frame)
    if produce.transactional_id is None:
        request = AppendRequest(broker, call, produce)
        request.append(memoryview(data))
        request.settle()
    else:
        TransactionalAppend(broker, call, produce).begin(memoryview(data), frame)
