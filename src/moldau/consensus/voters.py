"""Who votes: the voters as the log's control records name them, by offset."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from moldau.protocol.schema import ZERO_UUID
from moldau.protocol.stored.control_records import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)
from moldau.records.control import QuorumValue

KRAFT_VERSION_MAX: Final = 1
IN_SNAPSHOT: Final = -1
"""The offset of voters that only the first snapshot, `0-0.checkpoint`, names."""


class ReplicaKey(NamedTuple):
    """A node with its directory; one that lost its disk comes back as another replica.

    The directory is all zeros where it is not known, and then stands for any.
    """

    node_id: int
    directory_id: bytes = ZERO_UUID

    def is_same(self, other: "ReplicaKey") -> bool:
        """Whether both may be one replica, as far as their directories are known."""
        if self.node_id != other.node_id:
            return False
        mine, its = self.directory_id, other.directory_id
        return mine == its or ZERO_UUID in (mine, its)


@dataclass(frozen=True, slots=True)
class VoterListener:
    """Where a voter is reached by the others."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A node with a vote; its directory tells it from one that lost its disk."""

    node_id: int
    directory_id: bytes
    listeners: tuple[VoterListener, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = KRAFT_VERSION_MAX

    @property
    def key(self) -> ReplicaKey:
        """The voter without its addresses."""
        return ReplicaKey(self.node_id, self.directory_id)


Voters = tuple[Voter, ...]


def find_voter(voters: Voters, node_id: int) -> Voter | None:
    """Return the voter with this id."""
    for voter in voters:
        if voter.node_id == node_id:
            return voter
    return None


def is_voter(voters: Voters, key: ReplicaKey) -> bool:
    """Say whether a replica votes; a directory that the voters do not name is not looked at."""
    voter = find_voter(voters, key.node_id)
    return voter is not None and voter.directory_id in (ZERO_UUID, key.directory_id)


def with_voter(voters: Voters, voter: Voter) -> Voters:
    """Return the voters with this one, in place of the one with its id, in the order of ids."""
    others = [each for each in voters if each.node_id != voter.node_id]
    return tuple(sorted([*others, voter], key=lambda each: each.node_id))


def without_voter(voters: Voters, key: ReplicaKey) -> Voters | None:
    """Return the voters without this one; None if it is none of them, or the last."""
    remaining = tuple(voter for voter in voters if voter.key != key)
    return remaining if 0 < len(remaining) < len(voters) else None


def forget_directories(voters: Voters) -> Voters:
    """Return voters of the settings, which know no directories."""
    return tuple(replace(voter, directory_id=ZERO_UUID) for voter in voters)


def voters_record(voters: Voters) -> VotersRecord:
    """Return the control record that names the voters."""
    return VotersRecord(
        voters=[
            VotersRecordVoter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=[
                    Endpoint(name=each.name, host=each.host, port=each.port)
                    for each in voter.listeners
                ],
                kraft_version_feature=KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min,
                    max_supported_version=voter.kraft_version_max,
                ),
            )
            for voter in voters
        ]
    )


class VotersAt(NamedTuple):
    """What the log says of the voters from an offset on."""

    offset: int | None
    """Where the voters were written last; None if they come from the settings."""
    voters: Voters
    kraft_version: int


class VoterHistory:
    """The voters and the level of kraft.version by offset.

    They count as soon as they are appended; truncation goes back to those before.
    """

    def __init__(self, static_voters: Voters = ()) -> None:
        self._entries: list[tuple[int, VotersAt]] = [
            (IN_SNAPSHOT - 1, VotersAt(None, static_voters, 0))
        ]
        """With the offset of the record that said so; the first one is never truncated."""

    @property
    def latest(self) -> VotersAt:
        """What counts now."""
        return self._entries[-1][1]

    @property
    def voters(self) -> Voters:
        """The voters that count now."""
        return self._entries[-1][1].voters

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version that counts now."""
        return self._entries[-1][1].kraft_version

    @property
    def offset(self) -> int | None:
        """Where the voters were written last; None if they come from the settings."""
        return self._entries[-1][1].offset

    def at(self, end_offset: int) -> VotersAt:
        """Return what counted at the end of the log below this offset."""
        found = self._entries[0][1]
        for offset, entry in self._entries:
            if offset < end_offset:
                found = entry
        return found

    def replay(self, value: QuorumValue, offset: int) -> None:
        """Take in a control record of the log, or of a snapshot that ends behind this offset."""
        latest = self.latest
        match value:
            case KRaftVersionRecord():
                latest = latest._replace(kraft_version=value.kraft_version)
            case VotersRecord():
                latest = latest._replace(
                    offset=offset, voters=tuple(_voter(voter) for voter in value.voters)
                )
            case _:  # who leads, and where a snapshot begins and ends, is not ours
                return
        self._entries.append((offset, latest))

    def truncate(self, to: int) -> None:
        """Forget what the records from this offset on said."""
        while len(self._entries) > 1 and self._entries[-1][0] >= to:
            self._entries.pop()

    def restart(self, values: Sequence[QuorumValue], end_offset: int) -> None:
        """Begin anew with what a snapshot says that ends at this offset."""
        del self._entries[1:]
        for value in values:
            self.replay(value, end_offset - 1)

    def forget_before(self, log_start: int) -> None:
        """Let go of what no truncation goes back to: the log begins at this offset."""
        while len(self._entries) > 2 and self._entries[2][0] < log_start:
            del self._entries[1]


def _voter(record: VotersRecordVoter) -> Voter:
    listeners = tuple(VoterListener(each.name, each.host, each.port) for each in record.endpoints)
    feature = record.kraft_version_feature
    return Voter(
        record.voter_id,
        record.voter_directory_id,
        listeners,
        feature.min_supported_version,
        feature.max_supported_version,
    )
