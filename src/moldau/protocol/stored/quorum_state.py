"""The quorum-state file of a KRaft node."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, Uuid, field, int32, int64, string, uuid


class Voter(Struct):
    voter_id: int = field(int32)


class QuorumStateData(Message, versions=(0, 1), flexible=0):
    cluster_id: str = field(string, until=0)
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)
    voted_id: int = field(int32, default=-1)
    voted_directory_id: Uuid = field(uuid, since=1)
    applied_offset: int = field(int64, until=0)
    current_voters: Sequence[Voter] | None = field(Array(Voter), until=0, nullable=0)
