"""A run: a node under work and faults in a world, with all laws, from one seed."""

import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from moldau.client.admin import AsyncAdmin
from moldau.client.consumer import AsyncConsumer
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError
from moldau.kernel.disk import Disk
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.committed import ReadFile
from moldau.simulation.laws.node import NodeLaws
from moldau.simulation.laws.transformed import check_transformed
from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.machine import NodeProcess, SimulatedMachine
from moldau.simulation.process_disk import ProcessDisk
from moldau.simulation.workload.client import QUICK, WorkloadClient
from moldau.simulation.workload.ledger import NO_OFFSET, GroupPartition, WorkloadLedger
from moldau.simulation.workload.members import ConsumerMemberClient, MemberClient
from moldau.simulation.workload.mills import MillClient
from moldau.simulation.workload.producers import ProducerClient, QueueProducerClient
from moldau.simulation.workload.readers import CONSUMER_QUICK, CommittedReaderClient, ReaderClient
from moldau.simulation.workload.sharers import ImplicitSharerClient, SharerClient
from moldau.simulation.workload.team import Team
from moldau.simulation.workload.transactions import TransactionClient
from moldau.simulation.world import World

if TYPE_CHECKING:
    from moldau.simulation.disk import SimulatedDisk

SERVERS: Final = "node-1:9092"
START_SECONDS_MAX: Final = 60.0
LIVENESS_SECONDS: Final = 10.0
"""How long after the last fault every client has completed an operation at the latest."""
QUIESCE_SECONDS_MAX: Final = 120.0
SECONDS_MIN: Final = 1e-6
"""Less is no time: the world's clock has nanoseconds."""
LOOK_SECONDS: Final = 60.0
"""How often everything is looked at."""

TOPICS: Final[Mapping[str, int]] = {"events": 3, "payments": 2, "flour": 2, "queue": 2}
GROUPS: Final[Mapping[str, str]] = {
    MillClient.group: "payments",
    MemberClient.group: "events",
    ConsumerMemberClient.group: "events",
}
"""Which topic each group reads."""
SMALL: Final[Mapping[str, object]] = {"segment.bytes": 1 << 20, "segment.ms": 20_000}

SETTINGS: Final[Mapping[str, str]] = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092",
    "log.dirs": "/data",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "4000",
    "log.retention.check.interval.ms": "5000",
    "log.cleaner.backoff.ms": "2000",
    "log.segment.delete.delay.ms": "1000",
}


class FaultPlan(Protocol):
    """What goes wrong in a run."""

    def begin(self, run: "SimulatedRun") -> None:
        """Have faults happen from now on, by `run.world.after`, until `run.is_healing`."""

    def end(self, run: "SimulatedRun") -> None:
        """Take back everything that still lasts, but for the node: the run starts that."""


class NoFaults:
    """Nothing goes wrong."""

    def begin(self, run: "SimulatedRun") -> None:
        """Do nothing."""

    def end(self, run: "SimulatedRun") -> None:
        """Do nothing."""


@dataclass
class RunOutcome:
    """How a run went."""

    seed: int
    digest: str = ""
    """The trace's hash."""
    seconds: float = 0.0
    """How much time of the world it was."""
    outage_seconds: float = 0.0
    """How much of it no node served."""
    acknowledged: Counter[str] = field(default_factory=Counter)
    """Operations by kind."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults by kind."""
    faults_in_flight: Counter[str] = field(default_factory=Counter)
    """How many of them hit while a client waited for a send or a transaction."""
    violation: str = ""
    """The law that was broken, and by what; empty if none was."""

    @property
    def law(self) -> str:
        """What the violation is of, without its particulars; empty if there is none."""
        said = re.sub(r"^seed \d+ at [\d.]+ s: ", "", self.violation)
        words = re.sub(r"[\d.]+", "#", said).split(": ")
        return ": ".join(words[:2] if "#" in words[0] else words[:1])

    @property
    def operations_per_second(self) -> float:
        """How many operations were acknowledged per second outside of outages."""
        return self.acknowledged.total() / max(1.0, self.seconds - self.outage_seconds)


class SimulatedRun:
    """One node, its clients and its faults.

        outcome = SimulatedRun(seed=7, seconds=60, faults=NodeRestarts()).execute()
        print(outcome.violation or outcome.acknowledged)

    A fault uses `world`, `machine`, `node`, `start_node` and `note_fault`.
    """

    def __init__(
        self,
        seed: int,
        *,
        seconds: float = 60.0,
        nodes: int = 1,
        faults: FaultPlan | None = None,
        pace: float = 1.0,
        clients: Sequence[str] = (),
        keeps_text: bool = False,
    ) -> None:
        if nodes != 1:
            raise ValueError(f"{nodes} nodes: there are no clusters yet, 1 is allowed")
        self.world = World(seed, keeps_text=keeps_text)
        self.outcome = RunOutcome(seed)
        self.ledger = WorkloadLedger(self.world)
        self.is_healing = False
        """Whether faults are over."""
        self.node: NodeProcess | None = None
        """The node's process, alive or not."""
        self._random = self.world.random("run")
        self.durability = self._random.choice(("fsync", "fsync", "page-cache"))
        """With page-cache a power loss takes what was acknowledged: such a run has none."""
        self._seconds = seconds
        self._faults = faults or NoFaults()
        self._laws = NodeLaws(_look)
        self._turns = 0
        self._down_since: float | None = 0.0
        self.disk_in_use: SimulatedDisk | None = None
        """The disk that an operation of the node is at, while faults may hit that operation."""
        self.cut_off: dict[str, None] = {}
        """Machines of clients that stay without the node when all else is healed."""
        self._ended: NodeProcess | None = None
        self._team = Team(
            self.world,
            [each for each in self._clients(pace) if not clients or each.name in clients],
        )

    # What faults use.

    @property
    def machine(self) -> SimulatedMachine:
        """The machine of the node."""
        return self.world.machine("node-1")

    @property
    def may_lose_power(self) -> bool:
        """Whether a power loss takes nothing that was acknowledged."""
        return self.durability == "fsync"

    def start_node(self) -> None:
        """Start the node, on a machine that has power again if need be."""
        if self.node is not None and self.node.is_alive:
            return
        if not self.machine.host.is_up:
            self.machine.boot()
        self._turns = 0
        self.node = self.machine.start_node({**SETTINGS, "durability": self.durability})

    @property
    def client_names(self) -> list[str]:
        """The names of all clients."""
        return [client.name for client in self._team.clients]

    @property
    def client_machines(self) -> list[str]:
        """The names of the machines that clients run on."""
        count = len(self._team.clients)
        return list(dict.fromkeys(map(self._team.machine_of, range(count))))

    @property
    def machine_names(self) -> list[str]:
        """The names of all machines."""
        return [self.machine.name, *self.client_machines]

    def kill_node(self) -> None:
        """Kill the node's process, also in the middle of a disk operation of its own."""
        if self.node is None:
            return
        if self.disk_in_use is None:
            self.node.kill()
        else:
            self.node.die()

    def kill_client(self, name: str, absence_seconds: float) -> None:
        """Kill a client, and start it again after a while."""
        self._team.kill(name, absence_seconds)

    def note_fault(self, kind: str, text: str = "", *, is_in_flight: bool = False) -> None:
        """Count a fault, and have it in the trace."""
        self.outcome.faults[kind] += 1
        self.outcome.faults_in_flight[kind] += is_in_flight
        self.world.trace.note("world", "fault", f"{kind} {text}")

    # The run.

    def execute(self) -> RunOutcome:
        """Work, heal, look at everything; the outcome says if a law was broken."""
        with self.world as world:
            world.after_step.append(self._check_step)
            try:
                self._begin()
                self._work()
                self._heal()
                self._end()
            except AssertionError as error:  # a violation, or one that no step has seen
                self.outcome.violation = str(error) or repr(error)
            finally:  # also if it is interrupted
                self._tell_outage()
                self.outcome.seconds = world.seconds
                self.outcome.acknowledged = self.ledger.acknowledged
                self.outcome.digest = world.trace.digest()
        return self.outcome

    def _begin(self) -> None:
        self.start_node()
        self._await(self._serves, START_SECONDS_MAX, "starts")
        self._finish(self._create_topics, "setup")
        self._team.begin()

    def _work(self) -> None:
        self._faults.begin(self)
        until = self.world.seconds + self._seconds
        while until - self.world.seconds > SECONDS_MIN:
            self.world.run(min(LOOK_SECONDS, until - self.world.seconds))
            self._look()

    def _heal(self) -> None:
        self.is_healing = True
        self._faults.end(self)
        self._await(self._serves, START_SECONDS_MAX, "serves after the last fault")
        healed = self.world.seconds
        self.world.run(LIVENESS_SECONDS)
        for number, client in enumerate(self._team.clients):
            is_cut_off = self._team.machine_of(number) in self.cut_off
            if client.acknowledged_at < healed and not is_cut_off:
                raise LawViolation(
                    "liveness",
                    f"{client.name} has completed nothing in {LIVENESS_SECONDS:g} s after the last"
                    f" fault at {healed:.3f} s, and its last operation at"
                    f" {client.acknowledged_at:.3f} s",
                )

        for machine in self.cut_off:
            self.world.network.heal(machine, self.machine.name)
            self.world.network.heal(self.machine.name, machine)

    def _end(self) -> None:
        self._team.end()
        self._await(lambda: not self._team.is_alive, QUIESCE_SECONDS_MAX, "has clients that end")
        self._await(self._is_decided, QUIESCE_SECONDS_MAX, "ends all transactions")
        found = self._finish(self._read_all, "final read")
        self._look()
        self.ledger.history.check_end(found)
        offsets = self._finish(self._read_offsets, "reading offsets")
        check_transformed(
            {source: found[source] for source in MillClient.sources},
            [
                value
                for place in found
                if place.topic == MillClient.topic
                for _, value in found[place]
            ],
            {source: offsets[MillClient.group, source] for source in MillClient.sources},
        )

    def _serves(self) -> bool:
        self.start_node()
        return self.node is not None and self._is_up(self.node)

    @staticmethod
    def _is_up(process: NodeProcess) -> bool:
        return process.is_alive and process.is_serving

    def _is_decided(self) -> bool:
        node = self.node.node if self.node is not None else None
        return node is not None and all(
            replica.log is None or replica.log.stable_offset == replica.log.high_watermark
            for replica in node.broker.replicas
        )

    def _await(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        if not self.world.run_until(condition, seconds=seconds):
            raise LawViolation("liveness", f"the node {what}: not within {seconds:g} s")

    # Laws.

    def _check_step(self) -> None:
        process = self.node
        if process is None or process.loop.turns == self._turns:
            return
        self._turns = process.loop.turns
        self._note_outage(process)
        if process.node is not None and self._is_up(process):
            try:
                self._laws.check_step(process.node)
            except LawViolation as violation:
                self.world.violate(str(violation))

    def _look(self) -> None:
        self.ledger.history.check_reads()
        process = self.node
        if process is None or process.node is None or not self._is_up(process):
            return
        with ExitStack() as stack:
            for _, disk in sorted(self.machine.disks.items()):
                stack.enter_context(disk.without_faults())
            self._laws.check_whole(process.node)

    def _note_outage(self, process: NodeProcess) -> None:
        is_back = process.is_serving and process is not self._ended
        if is_back and self._down_since is not None:
            self.outcome.outage_seconds += self.world.seconds - self._down_since
            self._down_since = None

    def node_is_down(self) -> None:
        """Note that the node serves no more; whatever ends it says so."""
        self._ended = self.node
        if self._down_since is None:
            self._down_since = self.world.seconds

    def node_is_back(self) -> None:
        """Note that the node goes on, which was down but has not ended."""
        self._ended = None

    def _tell_outage(self) -> None:
        if self._down_since is not None:
            self.outcome.outage_seconds += self.world.seconds - self._down_since

    # What the run itself does as a client.

    def _finish(self, program: Callable[[], Coroutine[Any, Any, Any]], name: str) -> Any:
        process = self.world.machine("client-0").start(program, name=name)
        if not self.world.run_until(lambda: not process.is_alive, seconds=QUIESCE_SECONDS_MAX):
            raise LawViolation("liveness", f"{name} is not done in {QUIESCE_SECONDS_MAX:g} s")
        if process.error is not None:
            raise LawViolation("liveness", f"{name} has failed: {process.error!r}")
        return process.result

    async def _create_topics(self) -> None:
        async with AsyncAdmin(SERVERS, config=QUICK) as admin:
            for topic, partitions in TOPICS.items():
                await admin.create_topic(topic, partitions, configs=SMALL)
            group = ConfigResource(ResourceType.GROUP, SharerClient.group)
            await admin.alter_configs(group, set={"share.auto.offset.reset": "earliest"})

    async def _read_all(self) -> dict[TopicPartition, list[tuple[int, bytes]]]:
        """Read everything that is committed."""
        found: dict[TopicPartition, list[tuple[int, bytes]]] = {
            TopicPartition(topic, index): []
            for topic, count in TOPICS.items()
            for index in range(count)
        }
        settings = {**CONSUMER_QUICK, "isolation.level": "read_committed"}
        async with AsyncConsumer(SERVERS, config=settings) as consumer:
            ends = await consumer.end_offsets(found)
            consumer.assign(found)
            while any([await consumer.position(key) < ends[key] for key in found]):
                for record in await consumer.poll(timeout_ms=1_000):
                    assert record.value is not None
                    place = TopicPartition(record.topic, record.partition)
                    found[place].append((record.offset, record.value))
        return found

    async def _read_offsets(self) -> dict[GroupPartition, int]:
        """Read the committed offsets of all groups; each was written, and by no other later."""
        begun = self.ledger.now
        found: dict[GroupPartition, int] = {}
        async with AsyncAdmin(SERVERS, config=QUICK) as admin:
            for group, topic in GROUPS.items():
                places = [TopicPartition(topic, index) for index in range(TOPICS[topic])]
                offsets = await admin.list_group_offsets(group, places)
                for place in places:
                    committed = offsets.get(place)
                    if isinstance(committed, KafkaError):
                        raise committed
                    offset = NO_OFFSET if committed is None else committed.offset
                    self.ledger.offsets.read((group, place), offset, begun)
                    found[group, place] = offset
        return found

    def _clients(self, pace: float) -> list[WorkloadClient]:
        random, ledger = self.world.random("workload"), self.ledger
        clients: list[WorkloadClient] = [
            ProducerClient("producer-1", SERVERS, ledger, random),
            ProducerClient("producer-2", SERVERS, ledger, random),
            TransactionClient("payer-1", SERVERS, ledger, random),
            TransactionClient("payer-2", SERVERS, ledger, random),
            MillClient("mill-1", SERVERS, ledger, random),
            QueueProducerClient("producer-3", SERVERS, ledger, random),
            MemberClient("member-1", SERVERS, ledger, random),
            MemberClient("member-2", SERVERS, ledger, random),
            ConsumerMemberClient("member-3", SERVERS, ledger, random),
            ConsumerMemberClient("member-4", SERVERS, ledger, random),
            SharerClient("sharer-1", SERVERS, ledger, random),
            ImplicitSharerClient("sharer-2", SERVERS, ledger, random),
            ReaderClient("reader-1", SERVERS, ledger, random),
            CommittedReaderClient("reader-2", SERVERS, ledger, random),
        ]
        for client in clients:
            client.pause_seconds /= pace
        return clients


def _look(disk: Disk) -> ReadFile:
    """Return what reads the files of a disk of a world without a trace."""
    assert isinstance(disk, ProcessDisk), "the node runs in a world"
    return disk.peek
