"""Settings of the quorum's protocol."""

from dataclasses import dataclass

from moldau.consensus.effects import QuorumPeer


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """Timeouts as Kafka's `controller.quorum.*` settings have them, and where the quorum is."""

    cluster_id: str
    listener: str = "CONTROLLER"
    """The listener by which members reach each other."""
    bootstrap: tuple[QuorumPeer, ...] = ()
    """Where to ask for the leader; without them the voters are asked."""
    election_timeout_ms: int = 1000
    """And up to as much again, by chance, so that not all stand at once."""
    fetch_timeout_ms: int = 2000
    backoff_max_ms: int = 1000
    answer_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_wait_ms: int = 500
    fetch_bytes_max: int = 1 << 20
    auto_join: bool = False
    """Whether a controller that does not vote asks for a vote."""
    doubts_refusing_leader: bool = False
    """Whether a voter asks for pre-votes at once when nothing listens at the leader's address."""

    @property
    def check_quorum_seconds(self) -> float:
        """How long a leader leads without a majority that fetches."""
        return self.fetch_timeout_ms * 1.5 / 1000

    @property
    def announce_seconds(self) -> float:
        """How often a leader tells voters that do not fetch."""
        return self.fetch_timeout_ms / 2 / 1000
