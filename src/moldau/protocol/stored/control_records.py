"""Keys and values of control records."""

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
    int64,
    string,
    uint16,
    uuid,
)


class ControlRecordTypeSchema(Message, versions=(0, 0)):
    type: int = field(int16)


class EndTxnMarker(Message, versions=(0, 0)):
    coordinator_epoch: int = field(int32)


class LeaderChangeMessageVoter(Struct):
    voter_id: int = field(int32)
    voter_directory_id: Uuid = field(uuid, since=1)


class LeaderChangeMessage(Message, versions=(0, 1), flexible=0):
    version: int = field(int16)
    leader_id: int = field(int32)
    voters: Sequence[LeaderChangeMessageVoter] = field(Array(LeaderChangeMessageVoter))
    granting_voters: Sequence[LeaderChangeMessageVoter] = field(Array(LeaderChangeMessageVoter))


class Endpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class KRaftVersionFeature(Struct):
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class VotersRecordVoter(Struct):
    voter_id: int = field(int32)
    voter_directory_id: Uuid = field(uuid)
    endpoints: Sequence[Endpoint] = field(Array(Endpoint))
    kraft_version_feature: KRaftVersionFeature = field(KRaftVersionFeature)


class VotersRecord(Message, versions=(0, 0), flexible=0):
    version: int = field(int16)
    voters: Sequence[VotersRecordVoter] = field(Array(VotersRecordVoter))


class SnapshotHeaderRecord(Message, versions=(0, 0), flexible=0):
    version: int = field(int16)
    last_contained_log_timestamp: int = field(int64)


class SnapshotFooterRecord(Message, versions=(0, 0), flexible=0):
    version: int = field(int16)


class KRaftVersionRecord(Message, versions=(0, 0), flexible=0):
    version: int = field(int16)
    kraft_version: int = field(int16)
