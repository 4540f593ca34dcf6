"""BrokerHeartbeat, API key 63: v0-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Uuid, boolean, field, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, api_key=63, versions=(0, 2), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    current_metadata_offset: int = field(int64)
    want_fence: bool = field(boolean)
    want_shut_down: bool = field(boolean)
    offline_log_dirs: Sequence[Uuid] = field(Array(uuid), since=1, tag=0)
    cordoned_log_dirs: Sequence[Uuid] | None = field(
        Array(uuid), since=2, nullable=2, tag=1, default=None
    )


class BrokerHeartbeatResponse(Message, api_key=63, versions=(0, 2), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    is_caught_up: bool = field(boolean)
    is_fenced: bool = field(boolean, default=True)
    should_shut_down: bool = field(boolean)
