"""Scenarios of one member as text: events behind `>`, what it wants and is in the lines below."""

from collections.abc import Iterator

from moldau._native.records import Record, read_batches
from moldau.consensus import effects as wanted
from moldau.consensus import messages
from moldau.consensus.events import (
    PeerRequest,
    PeerResponse,
    Propose,
    QuorumEvent,
    RequestFailed,
    Resign,
    SendFailure,
    Start,
    Stop,
    StorageFailed,
    Synced,
    Tick,
)
from moldau.consensus.member import QuorumMember
from moldau.consensus.messages import LeaderView
from moldau.consensus.quorum_state import Election, Vote
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import Voter, VoterListener
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import fetch as fetch_api
from moldau.protocol.messages import fetch_snapshot as snapshot_api
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.records.batch import build_batch
from moldau.simulation.quorum_log import MemoryQuorumLog, formatted

CLUSTER = "cluster"
LISTENER = "CONTROLLER"


def voter(node_id: int) -> Voter:
    """Return a voter, whose directory is as its id."""
    return Voter(node_id, bytes([node_id] * 16), (VoterListener(LISTENER, f"n{node_id}", 9093),))


def _pair(text: str) -> tuple[LeaderEpoch, Offset]:
    epoch, _, offset = text.partition(":")
    return LeaderEpoch(int(epoch)), Offset(int(offset))


class Scenario:
    """Node 1, and what is done to it."""

    def __init__(self) -> None:
        self.log = MemoryQuorumLog()
        self.time = 10.0
        self.timer: float | None = None
        self.sent: dict[int, wanted.SendToPeer] = {}
        self.member: QuorumMember | None = None
        self.settings = QuorumSettings(CLUSTER)
        self.requests = 0

    def run(self, text: str) -> Iterator[str]:
        """Yield the scenario's lines as they have to be."""
        for line in text.splitlines():
            if line.startswith(">"):
                yield line
                yield from (f"    {each}" for each in self.do(*line[1:].split()))
            elif not line.startswith("    "):
                yield line

    def do(self, command: str, *words: str) -> list[str]:
        """Do what a line says."""
        if command == "voters":
            self.log = formatted(tuple(voter(int(each)) for each in words))
            return []
        if command == "saved":
            epoch, leader, vote = (None if each == "-" else int(each) for each in words)
            given = None if vote is None else Vote(vote, voter(vote).directory_id)
            self.log.election = Election(epoch or 0, leader, given)
            return []
        if command == "batch":
            self.log.append(self.batch(int(words[0]), words[1]))
            self.log.begin_sync()
            self.log.end_sync()
            return []
        if command == "doubts":
            self.settings = QuorumSettings(CLUSTER, doubts_refusing_leader=True)
            return []
        return self.handle(getattr(self, command)(*words))

    def batch(self, epoch: int, value: str, delta: int = 0) -> bytes:
        record = Record(self.log.end_offset + delta, 0, None, value.encode())
        return build_batch([record], leader_epoch=epoch)

    # Events.

    def start(self) -> QuorumEvent:
        history = self.log.load_history(())
        self.member = QuorumMember(
            voter(1), self.settings, history, self.log, self.log.election, lambda: 0.5
        )
        return Start()

    def wait(self, milliseconds: str) -> QuorumEvent:
        self.time += int(milliseconds) / 1000
        return Tick()

    def sync(self) -> QuorumEvent:
        self.log.begin_sync()
        return Synced(self.log.end_sync())

    def propose(self, value: str) -> QuorumEvent:
        return Propose([value.encode()])

    def stop(self) -> QuorumEvent:
        return Stop(5000)

    def resign(self, epoch: str) -> QuorumEvent:
        return Resign(LeaderEpoch(int(epoch)))

    def storage_fails(self) -> QuorumEvent:
        return StorageFailed()

    def _request(self, message: Message, version: int) -> QuorumEvent:
        self.requests += 1
        return PeerRequest(self.requests, message, version, LISTENER)

    def vote(self, node: str, epoch: str, last: str) -> QuorumEvent:
        return self._vote(node, epoch, last, pre_vote=False)

    def pre_vote(self, node: str, epoch: str, last: str) -> QuorumEvent:
        return self._vote(node, epoch, last, pre_vote=True)

    def _vote(self, node: str, epoch: str, last: str, *, pre_vote: bool) -> QuorumEvent:
        asking, asked = voter(int(node)).key, voter(1).key
        message = messages.vote_request(
            CLUSTER, asking, LeaderEpoch(int(epoch)), asked, _pair(last), pre_vote=pre_vote
        )
        return self._request(message, 2)

    def begin(self, node: str, epoch: str) -> QuorumEvent:
        leader = voter(int(node))
        message = messages.begin_request(CLUSTER, leader, LeaderEpoch(int(epoch)), voter(1).key)
        return self._request(message, 1)

    def end(self, node: str, epoch: str, *successors: str) -> QuorumEvent:
        keys = tuple(voter(int(each)).key for each in successors)
        message = messages.end_request(CLUSTER, voter(int(node)), LeaderEpoch(int(epoch)), keys)
        return self._request(message, 1)

    def fetch(self, node: str, epoch: str, last: str, high_watermark: str = "-1") -> QuorumEvent:
        last_epoch, offset = _pair(last)
        partition = fetch_api.FetchPartition(
            current_leader_epoch=int(epoch),
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            replica_directory_id=voter(int(node)).directory_id,
            high_watermark=int(high_watermark),
        )
        topic = fetch_api.FetchTopic(topic_id=messages.METADATA_TOPIC_ID, partitions=[partition])
        state = fetch_api.ReplicaState(replica_id=int(node))
        message = fetch_api.FetchRequest(
            cluster_id=CLUSTER, replica_state=state, max_wait_ms=500, topics=[topic]
        )
        return self._request(message, 18)

    # Answers to what was sent last to a node.

    def _sent_to(self, node: str) -> wanted.SendToPeer:
        return [each for each in self.sent.values() if each.peer.node_id == int(node)][-1]

    def _view(self, leader: str, epoch: str) -> LeaderView:
        if leader == "-":
            return LeaderView(None, LeaderEpoch(int(epoch)), None)
        [endpoint] = voter(int(leader)).listeners
        return LeaderView(int(leader), LeaderEpoch(int(epoch)), endpoint)

    def _answer(self, node: str, message: Message) -> QuorumEvent:
        return PeerResponse(self._sent_to(node).request_id, message)

    def granted(self, node: str, epoch: str, leader: str = "-") -> QuorumEvent:
        view = self._view(leader, epoch)
        return self._answer(node, messages.vote_answer(view, ErrorCode.NONE, 2, granted=True))

    def refused(self, node: str, epoch: str, leader: str = "-") -> QuorumEvent:
        view = self._view(leader, epoch)
        return self._answer(node, messages.vote_answer(view, ErrorCode.NONE, 2, granted=False))

    def told(self, node: str, epoch: str) -> QuorumEvent:
        view = self._view("1", epoch)
        return self._answer(node, messages.end_answer(view, ErrorCode.NONE, 1))

    def _fetched(self, error: str, leader: str, epoch: str) -> fetch_api.FetchResponse:
        view = self._view(leader, epoch)
        return messages.fetch_answer(view, ErrorCode[error], 18, Offset(0), Offset(0))

    def fetched(self, node: str, epoch: str, high_watermark: str, *values: str) -> QuorumEvent:
        response = self._fetched("NONE", node, epoch)
        partition = response.responses[0].partitions[0]
        partition.high_watermark = int(high_watermark)
        partition.records = b"".join(
            self.batch(int(epoch), value, delta) for delta, value in enumerate(values)
        )
        return self._answer(node, response)

    def fetch_error(self, node: str, error: str, leader: str, epoch: str) -> QuorumEvent:
        return self._answer(node, self._fetched(error, leader, epoch))

    def diverged(self, node: str, epoch: str, end: str) -> QuorumEvent:
        response = self._fetched("NONE", node, epoch)
        last_epoch, offset = _pair(end)
        response.responses[0].partitions[0].diverging_epoch = fetch_api.EpochEndOffset(
            epoch=last_epoch, end_offset=offset
        )
        return self._answer(node, response)

    def snapshot(self, node: str, epoch: str, end: str) -> QuorumEvent:
        response = self._fetched("NONE", node, epoch)
        last_epoch, offset = _pair(end)
        response.responses[0].partitions[0].snapshot_id = fetch_api.SnapshotId(
            epoch=last_epoch, end_offset=offset
        )
        return self._answer(node, response)

    def piece(self, node: str, epoch: str, start: str, end: str) -> QuorumEvent:
        """A piece of the snapshot that the voters were formatted with, under another id."""
        sent = self._sent_to(node).message
        assert isinstance(sent, snapshot_api.FetchSnapshotRequest)
        asked = sent.topics[0].partitions[0].snapshot_id
        data = formatted((voter(1), voter(2), voter(3))).snapshots.popitem()[1]
        first, last = int(start), len(data) if end == "-" else int(end)
        response = messages.snapshot_answer(
            self._view(node, epoch),
            sent,
            ErrorCode.NONE,
            1,
            snapshot_id=SnapshotId(Offset(asked.end_offset), LeaderEpoch(asked.epoch)),
            size=len(data),
            position=first,
        )
        response.topics[0].partitions[0].unaligned_records = data[first:last]
        return self._answer(node, response)

    def fails(self, node: str, failure: str) -> QuorumEvent:
        return RequestFailed(self._sent_to(node).request_id, SendFailure[failure])

    # Effects.

    def handle(self, event: QuorumEvent) -> list[str]:
        """Have the member take it in; return what it wants, and what it is then."""
        assert self.member is not None
        if isinstance(event, Tick) and (self.timer is None or self.timer > self.time):
            return ["the timer has not come"]
        if isinstance(event, Tick):
            self.timer = None
        now = Instant(self.time, int(self.time * 1000))
        return [self._perform(each) for each in self.member.handle(event, now)] or ["nothing"]

    def _perform(  # noqa: PLR0911 - an effect each
        self, effect: wanted.QuorumEffect
    ) -> str:
        match effect:
            case wanted.SaveElection(election):
                self.log.election = election
                vote = "-" if election.vote is None else election.vote.node_id
                leader = "-" if election.leader_id is None else election.leader_id
                return f"save: epoch {election.epoch}, leader {leader}, vote {vote}"
            case wanted.AppendBatches(data, base, end):
                self.log.append(data)
                kinds = ["control" if each.is_control else "data" for each in read_batches(data)]
                return f"append: {base} to {end}, {', '.join(kinds)}"
            case wanted.TruncateLog(to):
                self.log.truncate(to)
                return f"truncate: to {to}"
            case wanted.PublishSnapshot(snapshot_id):
                self.log.publish(snapshot_id)
                return f"publish: {snapshot_id.file_name}"
            case wanted.WriteSnapshotPiece(snapshot_id, position, data):
                self.log.write_piece(snapshot_id, position, data)
                return f"write: {len(data)} bytes of {snapshot_id.file_name} at {position}"
            case wanted.SendToPeer(request_id, peer, message, _):
                self.sent[request_id] = effect
                return f"send to {peer.node_id}: {_told(message)}"
            case wanted.Answer(_, message):
                return f"answer: {_told(message)}"
            case wanted.AnswerFetch(_, response, start, _):
                return f"answer: {_told(response)}, records from {start}"
            case wanted.WakeAt(at):
                self.timer = at
                return f"wake after {round((at - self.time) * 1000)} ms"
            case wanted.RoleChanged(before, after, epoch, cause):
                return f"{before} -> {after}, epoch {epoch}: {cause}"
            case wanted.VotersChanged(voters):
                return f"voters: {', '.join(str(each.node_id) for each in voters.voters)}"
            case _:
                return repr(effect)


def _told(message: Message) -> str:
    """Return a message's name, and the fields of its partition that are not their defaults."""
    name = type(message).__name__
    topics = getattr(message, "topics", None) or getattr(message, "responses", ())
    partition = topics[0].partitions[0] if topics else message
    if isinstance(message, VoteRequest) and partition.pre_vote:
        name = f"pre-vote {name}"
    fresh = type(partition)()
    fields = [
        f"{each.name}={_value(getattr(partition, each.name))}"
        for each in partition._fields
        if getattr(partition, each.name) != getattr(fresh, each.name)
    ]
    return f"{name}({', '.join(fields)})"


def _value(value: object) -> object:
    match value:
        case bytes():
            return f"directory {value[0]}" if len(value) == 16 else value
        case fetch_api.LeaderIdAndEpoch() | snapshot_api.LeaderIdAndEpoch():
            return f"{value.leader_id} in {value.leader_epoch}"
        case list() | tuple():
            return [each.candidate_id if hasattr(each, "candidate_id") else each for each in value]
        case _ if hasattr(value, "end_offset"):
            return f"{value.epoch}:{value.end_offset}"
        case _:
            return value
