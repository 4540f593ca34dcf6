"""BrokerRegistration, API key 62: v0-v4, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class Feature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class BrokerRegistrationRequest(Message, api_key=62, versions=(0, 4), flexible=0):
    broker_id: int = field(int32)
    cluster_id: str = field(string)
    incarnation_id: Uuid = field(uuid)
    listeners: Sequence[Listener] = field(Array(Listener))
    features: Sequence[Feature] = field(Array(Feature))
    rack: str | None = field(string, nullable=0)
    is_migrating_zk_broker: bool = field(boolean, since=1)
    log_dirs: Sequence[Uuid] = field(Array(uuid), since=2, ignorable=True)
    previous_broker_epoch: int = field(int64, since=3, default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, api_key=62, versions=(0, 4), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    broker_epoch: int = field(int64, default=-1)
