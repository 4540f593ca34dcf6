"""Who votes: the voters as the log's control records have named them."""

from dataclasses import dataclass
from typing import Final

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


def voters_record(voters: tuple[Voter, ...]) -> VotersRecord:
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
                kraft_version_feature=KRaftVersionFeature(max_supported_version=KRAFT_VERSION_MAX),
            )
            for voter in voters
        ]
    )


class VoterHistory:
    """The latest voters and level of kraft.version, gathered while the log is loaded."""

    def __init__(self, static_voters: tuple[Voter, ...] = ()) -> None:
        self.voters = static_voters
        self.kraft_version = 0
        self.offset: int | None = None
        """Where the voters were written last; None if they come from the settings."""

    def replay(self, value: QuorumValue, offset: int) -> None:
        """Take in a control record of the log, or of a snapshot (at `IN_SNAPSHOT`)."""
        match value:
            case KRaftVersionRecord():
                self.kraft_version = value.kraft_version
            case VotersRecord():
                self.offset = offset
                self.voters = tuple(_voter(voter) for voter in value.voters)
            case _:  # who leads, and where a snapshot begins and ends, is not ours
                pass


def _voter(record: VotersRecordVoter) -> Voter:
    listeners = tuple(VoterListener(each.name, each.host, each.port) for each in record.endpoints)
    return Voter(record.voter_id, record.voter_directory_id, listeners)
