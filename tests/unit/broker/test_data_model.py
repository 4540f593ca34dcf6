"""Clients that produce and fetch in any order: what is acknowledged is read once, in order."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from moldau._native.records import Record, read_batches
from moldau.broker.handlers.fetch import handle_fetch
from moldau.log.config import Durability, LogConfig
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.records.batch import build_batch, read_records
from tests.unit.broker.world import TOPIC_ID, Connection, World, produce_request
from tests.unit.log.logs import START_MS

PARTITIONS = 3
VERSION = 18


class Reader:
    """A consumer of all partitions, with a session or without."""

    def __init__(self, *, has_session: bool) -> None:
        self.connection = Connection()
        self.has_session = has_session
        self.session_id = 0
        self.epoch = 0 if has_session else -1
        self.offsets = [0] * PARTITIONS
        self.sent = [-1] * PARTITIONS
        self.seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.is_waiting = False
        self.deadline = 0.0
        self.min_bytes = 1

    def request(self, *, min_bytes: int, max_bytes: int, max_wait_ms: int) -> FetchRequest:
        changed = [
            FetchPartition(partition=n, fetch_offset=offset, partition_max_bytes=max_bytes)
            for n, offset in enumerate(self.offsets)
            if self.epoch <= 0 or offset != self.sent[n]
        ]
        self.sent = list(self.offsets)
        return FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            topics=[FetchTopic(topic_id=TOPIC_ID, partitions=changed)] if changed else (),
        )

    def take(self) -> None:
        """Read what was answered."""
        response = self.connection.answer
        sent = self.connection.sents.pop()
        assert response.error_code == 0
        self.is_waiting = False
        if self.has_session:
            self.session_id, self.epoch = response.session_id, self.epoch + 1
        for topic in response.responses:
            for row in topic.partitions:
                assert row.error_code == 0
                self._take(row.partition_index, row.records)
        if sent is not None:
            sent()

    def _take(self, index: int, data: bytes) -> None:
        for batch in read_batches(data):
            for record in read_records(data, batch):
                if record.offset >= self.offsets[index]:
                    assert record.offset == self.offsets[index], "no record is left out"
                    self.seen[index].append(record.value)
                    self.offsets[index] += 1


class Clients(RuleBasedStateMachine):
    @initialize(
        durability=st.sampled_from([Durability.PAGE_CACHE, Durability.FSYNC]),
        segment_bytes=st.sampled_from([300, 1 << 20]),
    )
    def begin(self, durability, segment_bytes):
        self.world = World(durability=durability)
        self.world.create(partitions=PARTITIONS, config=LogConfig(segment_bytes=segment_bytes))
        self.readers = [Reader(has_session=n % 2 == 0) for n in range(4)]
        self.unanswered: list[tuple[Connection, int, list[bytes]]] = []
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.count = 0

    @rule(index=st.integers(0, PARTITIONS - 1), size=st.integers(1, 4))
    def produce(self, index, size):
        self.count += 1
        values = [b"%d.%d" % (self.count, n) for n in range(size)]
        records = [Record(n, START_MS, b"k", value) for n, value in enumerate(values)]
        request = produce_request({index: build_batch(records)}, timeout_ms=1_000_000)
        connection = Connection()
        self.world.produce(request, connection=connection)
        self.unanswered.append((connection, index, values))

    def collect(self):
        """Note what was acknowledged."""
        for waiting in list(self.unanswered):
            connection, index, values = waiting
            if connection.answers:
                (row,) = connection.answer.responses[0].partition_responses
                assert row.error_code == 0
                for n, value in enumerate(values):
                    self.acknowledged[index][row.base_offset + n] = value
                self.unanswered.remove(waiting)

    @rule()
    def flush(self):
        self.world.flush()
        self.collect()

    @rule()
    def sync(self):
        self.world.flush()
        self.world.sync()
        self.collect()

    @rule(ms=st.integers(1, 400))
    def wait(self, ms):
        self.world.flush()
        self.world.environment.run(ms / 1000)
        self.collect()

    @rule(
        number=st.integers(0, 3),
        min_bytes=st.sampled_from([0, 1, 200, 100_000]),
        max_bytes=st.sampled_from([1, 150, 1 << 20]),
        max_wait_ms=st.sampled_from([0, 100, 500]),
        room=st.sampled_from([0, 200, 1 << 20]),
        is_slow=st.booleans(),
    )
    def fetch(self, number, min_bytes, max_bytes, max_wait_ms, room, is_slow):
        reader = self.readers[number]
        if reader.is_waiting:
            return
        self.world.logs.is_slow = is_slow
        reader.connection.room = room
        request = reader.request(min_bytes=min_bytes, max_bytes=max_bytes, max_wait_ms=max_wait_ms)
        reader.is_waiting = True
        reader.min_bytes = min(min_bytes, max_bytes)
        reader.deadline = self.world.environment.monotonic + max_wait_ms / 1000
        call = self.world.call(1, VERSION, connection=reader.connection)
        assert handle_fetch(self.world.broker, call, request) is None

    @rule()
    def load(self):
        self.world.logs.catch_up()

    @invariant()
    def nobody_waits_in_vain(self):
        if not hasattr(self, "world"):
            return
        for reader in self.readers:
            if reader.connection.answers:
                reader.take()
            if not reader.is_waiting or self.world.logs.waiting or self.world.logs.staged:
                continue
            self.world.environment.run()
            if reader.connection.answers:
                reader.take()
                continue
            assert reader.deadline > self.world.environment.monotonic, "it waits for too long"
            size = sum(
                self.world.log(n).log.high_watermark > offset
                for n, offset in enumerate(reader.offsets)
            )
            assert not size or reader.min_bytes > 1, "there is something to read"

    @invariant()
    def what_is_read_was_written_and_is_in_order(self):
        if not hasattr(self, "world"):
            return
        for index in range(PARTITIONS):
            log = self.world.log(index).log
            for reader in self.readers:
                assert reader.offsets[index] <= log.high_watermark
                for offset, value in self.acknowledged[index].items():
                    if offset < reader.offsets[index]:
                        assert reader.seen[index][offset] == value

    def teardown(self):
        if not hasattr(self, "world"):
            return
        self.world.logs.is_slow = False
        self.sync()
        self.world.logs.catch_up()
        self.world.environment.run(1.0)
        for reader in self.readers:
            if reader.connection.answers:
                reader.take()
            for _ in range(1000):
                if reader.offsets == [len(known) for known in self.acknowledged]:
                    break
                self.fetch(self.readers.index(reader), 0, 1 << 20, 0, 1 << 20, is_slow=False)
                reader.take()
            for index in range(PARTITIONS):
                in_order = [value for _, value in sorted(self.acknowledged[index].items())]
                assert reader.seen[index] == in_order
        assert self.world.broker.fetch_bytes_out == 0
        assert len(self.world.broker.parking) == 0
        assert len(self.world.broker.write_deadlines) == 0


def test_produces_and_fetches_in_any_order():
    run_state_machine_as_test(
        Clients,
        settings=settings(
            max_examples=30,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
