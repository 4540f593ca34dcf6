"""UpdateRaftVoter, API key 82: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    field,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class KRaftVersionFeature(Struct):
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class UpdateRaftVoterRequest(Message, api_key=82, versions=(0, 0), flexible=0):
    cluster_id: str | None = field(string, nullable=0)
    current_leader_epoch: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: Uuid = field(uuid)
    listeners: Sequence[Listener] = field(Array(Listener))
    kraft_version_feature: KRaftVersionFeature = field(KRaftVersionFeature)


class CurrentLeader(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)
    host: str = field(string)
    port: int = field(int32)


class UpdateRaftVoterResponse(Message, api_key=82, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    current_leader: CurrentLeader = field(CurrentLeader, tag=0)
