"""A coordinator's partition: loading, deciding, recording, answering."""

import pytest

from moldau._native.records import Record, read_batches
from moldau.broker.coordinators.shard import ShardState
from moldau.coordination.command import DONE
from moldau.coordination.producer import ProducerIdentity
from moldau.kernel.ids import LeaderEpoch, ProducerEpoch, ProducerId, TopicId, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import build_batch
from tests.unit.broker.coordinators.register import Get, Put, RegisterWorld, Remind, Wait
from tests.unit.broker.world import TOPIC, TOPIC_ID, World

PRODUCER = ProducerIdentity(ProducerId(7), ProducerEpoch(1))
PARTITION = TopicPartition(TOPIC, 0)


@pytest.fixture
def register() -> RegisterWorld:
    world = RegisterWorld()
    world.run()
    return world


class TestLoading:
    def test_who_asks_meanwhile_is_told_to_wait(self) -> None:
        register = RegisterWorld()
        register.submit(Get("a"))
        assert register.taken() == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]

        register.run()

        assert register.shard.state is ShardState.ACTIVE
        assert register.ask(Get("a")) == "none"
        assert register.performed == ["loaded"]

    def test_finds_what_was_recorded(self, register: RegisterWorld) -> None:
        register.ask(Put({"a": 1, "b": 2}))
        register.ask(Put({"a": 3}))

        register.shard = register.start()
        register.run()

        assert register.ask(Get("a")) == 3
        assert register.ask(Get("b")) == 2

    def test_goes_on_slice_by_slice(self, register: RegisterWorld) -> None:
        for number in range(100):
            register.ask(Put({f"n{number}": number}, note="x" * 4000))
        loads = register.world.logs.loads

        register.shard = register.start()
        register.run()

        assert register.world.logs.loads > loads + 4
        assert register.ask(Get("n99")) == 99

    def test_waits_for_a_slow_disk(self, register: RegisterWorld) -> None:
        register.ask(Put({"a": 1}))
        logs = register.world.logs
        logs.is_slow = True

        register.shard = register.start()
        register.run()
        register.submit(Get("a"))
        assert register.taken() == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        while logs.waiting:
            logs.catch_up()
            register.run()

        assert register.ask(Get("a")) == 1

    def test_applies_transactions_by_their_markers(self, register: RegisterWorld) -> None:
        register.ask(Put({"a": 1}, PRODUCER))
        assert register.ask(Get("a")) == "none"
        end(register, is_commit=True)
        register.ask(Put({"b": 1}, PRODUCER))
        end(register, is_commit=False)
        register.ask(Put({"c": 1}, PRODUCER))

        register.shard = register.start()
        register.run()

        assert [register.ask(Get(name)) for name in "abc"] == [1, "none", "none"]
        end(register, is_commit=True)
        assert register.ask(Get("c")) == 1

    def test_skips_records_of_types_that_are_not_known(self, register: RegisterWorld) -> None:
        append(register.world, [Record(0, 0, b"\x63\x63new", b"\0\0")])
        register.ask(Put({"a": 1}))

        register.shard = register.start()
        register.run()

        assert register.ask(Get("a")) == 1

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param(Record(0, 0, b"\0", b""), id="no type"),
            pytest.param(Record(0, 0, b"\0\1\0", b"\0\0"), id="a key that ends too early"),
            pytest.param(Record(0, 0, b"\0\1\0\0\0\0\0\0\0\0", b"\0\x09"), id="a newer version"),
            pytest.param(Record(0, 0, b"\0\1\0\0\0\0\0\0\0\0", b""), id="no version"),
        ],
    )
    def test_a_log_that_cannot_be_read_has_no_coordinator(
        self, register: RegisterWorld, bad: Record
    ) -> None:
        append(register.world, [bad])

        register.shard = register.start()
        register.run()

        assert register.shard.state is ShardState.FAILED
        assert register.ask(Get("a")) == ErrorCode.NOT_COORDINATOR
        register.world.broker.shard_watch.unreadable.assert_called_once()

    def test_one_that_is_closed_meanwhile_does_not_begin(self, register: RegisterWorld) -> None:
        register.shard = register.start()
        register.shard.close()
        register.run()

        assert register.shard.state is ShardState.CLOSED
        assert register.performed == ["loaded"]


class TestAnswering:
    def test_waits_until_what_is_recorded_is_safe(self) -> None:
        register = RegisterWorld(Durability.FSYNC)
        register.run()

        register.submit(Put({"a": 1}))
        register.submit(Get("a"))
        register.world.flush()
        assert register.taken() == []
        assert register.performed == ["loaded"]
        register.world.sync()

        # Who asks sees at once what may still be lost, and is told of it when it cannot be.
        assert register.taken() == ["done", 1]
        assert register.performed == ["loaded", "a is set"]

    def test_does_not_wait_if_nothing_is_on_its_way(self, register: RegisterWorld) -> None:
        register.submit(Get("a"))
        assert register.taken() == ["none"]

    def test_who_is_not_allowed_to_is_told_at_once(self, register: RegisterWorld) -> None:
        register.submit(Put({"a": -1}))
        assert register.taken() == [ErrorCode.INVALID_REQUEST]

    def test_an_error_of_ours_is_the_callers_to_handle(self, register: RegisterWorld) -> None:
        with pytest.raises(ValueError, match="what"):
            register.submit("what")
        assert register.ask(Put({"a": 1})) == "done"

    def test_somebody_who_waits_hears_when_it_is_time(self, register: RegisterWorld) -> None:
        register.submit(Wait())
        register.world.flush()
        assert register.taken() == []
        register.submit(Put({"a": 1}))
        register.world.flush()

        assert register.taken() == ["done", "heard"]

    def test_who_waits_when_it_closes_is_sent_away(self, register: RegisterWorld) -> None:
        register.submit(Wait())
        register.shard.close()
        register.submit(Get("a"))

        assert register.taken() == [ErrorCode.NOT_COORDINATOR] * 2

    def test_nobody_waits_for_others_when_the_broker_stops(self, register: RegisterWorld) -> None:
        register.submit(Wait())
        register.submit(Put({"a": 1}))
        assert register.taken() == []

        register.shard.let_go()
        register.submit(Wait())

        assert register.taken() == [ErrorCode.NOT_COORDINATOR] * 2
        register.world.flush()
        assert register.taken() == ["done"], "what is recorded is answered"

    def test_too_few_replicas_in_sync_record_nothing(self, register: RegisterWorld) -> None:
        replica = register.shard.replica
        replica.configure(2, (1, 2), (1,))
        register.submit(Put({"a": 1}))
        replica.configure(2, (1, 2), (1, 2))

        assert register.taken() == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert register.ask(Get("a")) == "none"


class TestRecording:
    def test_a_decision_is_one_batch(self, register: RegisterWorld) -> None:
        register.ask(Put({"a": 1, "b": 2}))
        assert batch_count(register) == 1

    def test_one_that_may_be_cut_is_cut_where_it_grows_too_large(self) -> None:
        register = RegisterWorld(config=LogConfig(max_message_bytes=500))
        register.run()
        numbers = {f"n{number}": number for number in range(30)}

        assert register.ask(Put(numbers, is_atomic=False)) == "done"

        assert batch_count(register) > 2
        register.shard = register.start()
        register.run()
        assert [register.ask(Get(name)) for name in numbers] == list(numbers.values())

    def test_one_that_is_too_large_has_it_begin_again(self) -> None:
        register = RegisterWorld(config=LogConfig(max_message_bytes=500))
        register.run()
        register.ask(Put({"a": 1}))
        register.submit(Wait())

        register.submit(Put({"a": 2}, note="x" * 500))

        # The one who asked for too much hears that, others that they may ask again.
        assert register.taken() == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_COORDINATOR]
        register.submit(Get("a"))
        assert register.taken() == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        register.run()
        assert register.ask(Get("a")) == 1

    @pytest.mark.parametrize(
        ("command", "code"),
        [
            (Put({"a": 2}, note="x" * 500, is_pure=True), ErrorCode.UNKNOWN_SERVER_ERROR),
            (
                Put({"a": 2}, ProducerIdentity(PRODUCER.id, ProducerEpoch(0)), is_pure=True),
                ErrorCode.INVALID_PRODUCER_EPOCH,
            ),
        ],
        ids=["too large", "of a fenced producer"],
    )
    def test_what_the_log_refuses_concerns_nobody_else(self, command: Put, code: ErrorCode) -> None:
        register = RegisterWorld(config=LogConfig(max_message_bytes=500))
        register.run()
        register.ask(Put({"a": 1}, PRODUCER))
        end(register, is_commit=True)
        register.submit(Wait())

        register.submit(command)

        assert register.taken() == [code]
        assert register.ask(Get("a")) == 1
        register.submit(Put({"b": 1}))
        register.world.flush()
        assert register.taken() == ["done", "heard"]

    def test_what_cannot_be_written_has_it_begin_again(self, register: RegisterWorld) -> None:
        register.ask(Put({"a": 1}))
        disk = register.world.disk
        capacity, disk._capacity_bytes = disk._capacity_bytes, disk._used_bytes

        register.submit(Put({"a": 2}))
        register.submit(Get("a"))
        register.world.write_staged()
        disk._capacity_bytes = capacity

        assert register.taken() == [ErrorCode.NOT_COORDINATOR] * 2
        register.run()
        assert register.ask(Get("a")) == 1
        register.world.broker.shard_watch.lost.assert_called_once()
        assert register.performed.count("loaded") == 2


class TestMarkers:
    def test_end_a_transaction_when_they_are_safe(self) -> None:
        register = RegisterWorld(Durability.FSYNC)
        register.run()
        register.submit(Put({"a": 1}, PRODUCER))

        end(register, is_commit=True)
        assert register.taken() == []
        register.world.sync()

        assert register.taken() == ["done", DONE]

    def test_of_an_older_epoch_are_refused(self, register: RegisterWorld) -> None:
        register.ask(Put({"a": 1}, PRODUCER))

        end(register, is_commit=False, producer=ProducerIdentity(PRODUCER.id, ProducerEpoch(0)))

        assert register.taken() == [ErrorCode.INVALID_PRODUCER_EPOCH]
        end(register, is_commit=True)
        assert register.ask(Get("a")) == 1

    def test_are_not_written_while_it_loads(self) -> None:
        register = RegisterWorld()
        end(register, is_commit=True)
        assert register.taken() == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


class TestTimers:
    def test_what_they_decide_is_recorded(self, register: RegisterWorld) -> None:
        register.ask(Remind("a", 5.0))
        register.run(4.9)
        assert register.ask(Get("a")) == "none"
        register.run(0.2)
        register.world.flush()

        assert register.ask(Get("a")) == 1

    def test_the_last_one_counts(self, register: RegisterWorld) -> None:
        register.ask(Remind("a", 5.0))
        register.ask(Remind("a", 8.0))
        register.run(6)
        assert register.ask(Get("a")) == "none"
        register.ask(Remind("a", None))
        register.run(6)

        assert register.ask(Get("a")) == "none"

    def test_do_not_go_on_when_it_closes(self, register: RegisterWorld) -> None:
        register.ask(Remind("a", 5.0))
        register.shard.close()
        register.run(6)

        assert register.world.log().log.log_end == 0

    def test_one_that_fails_leaves_the_others(self, register: RegisterWorld) -> None:
        register.ask(Remind("broken", 5.0))
        register.ask(Remind("a", 5.0))
        register.run(6)
        register.world.flush()

        assert register.ask(Get("a")) == 1
        register.world.broker.shard_watch.failed.assert_called_once()


def test_a_later_leader_has_a_later_term(register: RegisterWorld) -> None:
    before = register.shard.epoch
    log = register.world.log().log
    register.ask(Put({"a": 1}))

    register.world.replicas.lead(PARTITION, TopicId(TOPIC_ID), log, LeaderEpoch(before + 3))
    register.shard = register.start()
    register.run()

    assert register.shard.epoch == before + 3
    assert register.ask(Put({"a": 2})) == "done"
    assert log.latest_epoch == before + 3


def end(register: RegisterWorld, *, is_commit: bool, producer: ProducerIdentity = PRODUCER) -> None:
    register.shard.write_marker(
        producer,
        is_commit=is_commit,
        coordinator_epoch=0,
        transaction_version=1,
        then=register.take,
    )
    register.world.flush()
    if register.answers == [DONE]:
        register.answers.clear()


def append(world: World, records: list[Record]) -> None:
    world.write(bytearray(build_batch(records)))


def batch_count(register: RegisterWorld) -> int:
    return len(read_batches(register.world.log().read(0)))
