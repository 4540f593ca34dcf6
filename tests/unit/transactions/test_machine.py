"""What a coordinator of transactions answers, in which state, and what follows."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from moldau.coordination.command import DONE
from moldau.coordination.producer import ProducerIdentity
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactions,
)
from moldau.transactions.records import record_of
from moldau.transactions.state import TransactionState
from moldau.transactions.transaction import EPOCH_MAX, NEVER_MS
from tests.unit.transactions.transaction_world import ID, A, B, TransactionWorld, bumped

if TYPE_CHECKING:
    from moldau.coordination.refusal import Refusal

State = TransactionState
STATES = (
    State.EMPTY,
    State.ONGOING,
    State.PREPARE_COMMIT,
    State.PREPARE_ABORT,
    State.COMPLETE_COMMIT,
    State.COMPLETE_ABORT,
)


def world_in(state: State, version: int) -> tuple[TransactionWorld, ProducerIdentity]:
    """Return a world whose transaction is in a state, and its producer as the client knows it."""
    w = TransactionWorld(version)
    producer = w.init()
    if state is State.EMPTY:
        return w, producer
    assert w.add(producer, A) is DONE
    if state is not State.ONGOING:
        producer = w.end(producer, is_commit=state.is_commit)
        if not state.is_prepared:
            w.mark()
    assert w.state is state
    return w, producer


OK = "ok"
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
INVALID = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def said(answer: object) -> object:
    return answer if isinstance(answer, ErrorCode) else OK


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("state", "commit", "abort", "abort_bumping"),
    [
        (State.EMPTY, INVALID, INVALID, OK),
        (State.ONGOING, OK, OK, OK),
        (State.PREPARE_COMMIT, CONCURRENT, CONCURRENT, CONCURRENT),
        (State.PREPARE_ABORT, CONCURRENT, CONCURRENT, CONCURRENT),
        (State.COMPLETE_COMMIT, OK, INVALID, OK),
        (State.COMPLETE_ABORT, INVALID, OK, OK),
    ],
)
def test_ending(version: int, state: State, commit, abort, abort_bumping) -> None:
    w, producer = world_in(state, version)
    if version == 2:
        # The epoch tells a transaction that has not begun from one that was ended before.
        commit = INVALID if state is State.COMPLETE_COMMIT else commit
        abort = abort_bumping
    assert said(w.end(producer, is_commit=True)) == commit
    w, producer = world_in(state, version)
    assert said(w.end(producer, is_commit=False)) == abort


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", STATES)
def test_producers_that_are_others(version: int, state: State) -> None:
    w, producer = world_in(state, version)
    stranger = ProducerIdentity(ProducerId(producer.id + 7), producer.epoch)
    zombie = bumped(producer, -2 if version == 2 else -1)
    is_prepared = state.is_prepared
    for ask in (w.end, lambda p: w.add(p, B)):
        assert ask(stranger) == (CONCURRENT if is_prepared else MAPPING)
        assert ask(zombie) == (CONCURRENT if is_prepared else FENCED)
        assert ask(bumped(producer, 3)) == (CONCURRENT if is_prepared else FENCED)
    assert w.verify(stranger, A) == MAPPING
    assert w.verify(zombie, A) == FENCED
    assert w.state is state


@pytest.mark.parametrize("state", STATES)
def test_adding(state: State) -> None:
    w, producer = world_in(state, 1)
    expected = CONCURRENT if state.is_prepared else DONE
    assert w.add(producer, A, B) == expected
    if not state.is_prepared:
        assert w.state is State.ONGOING
        assert w.known.partitions == {A, B}
        recorded = len(w.log)
        assert w.add(producer, B) is DONE
        assert len(w.log) == recorded, "it is there already"


@pytest.mark.parametrize("state", STATES)
def test_verifying(state: State) -> None:
    w, producer = world_in(state, 1)
    missing = {A, B} - w.known.partitions
    assert w.verify(producer, A, B) == (CONCURRENT if state.is_prepared else missing)


def test_ids_that_are_not_known() -> None:
    w = TransactionWorld()
    producer = ProducerIdentity(ProducerId(1), ProducerEpoch(0))
    assert w.add(producer, A) == w.verify(producer, A) == w.end(producer) == MAPPING
    assert w.ask(DescribeTransaction(ID)) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert w.ask(ListTransactions()) == ()


def test_an_epoch_for_each_transaction() -> None:
    w = TransactionWorld(2)
    first = w.init()
    assert first.epoch == 0
    w.add(first, A, B)
    second = w.end(first)
    assert second == bumped(first)
    (markers,) = w.mark()
    assert (markers.producer, markers.is_commit, markers.partitions) == (second, True, {A, B})
    assert markers.transaction_version == 2
    assert w.state is State.COMPLETE_COMMIT
    assert w.add(first, A) == FENCED
    assert w.add(second, A) is DONE


def test_the_older_protocol_keeps_its_epoch() -> None:
    w = TransactionWorld(1)
    producer = w.init()
    w.add(producer, A)
    assert w.end(producer) == producer
    (markers,) = w.mark()
    assert (markers.producer, markers.transaction_version) == (producer, 0)
    assert w.end(producer) == producer, "the answer got lost"
    assert w.end(producer, is_commit=False) == INVALID


def test_an_end_whose_answer_got_lost() -> None:
    w = TransactionWorld(2)
    first = w.init()
    w.add(first, A)
    second = w.end(first)
    assert w.end(first) == CONCURRENT
    w.mark()
    assert w.end(first) == second
    assert w.end(first, is_commit=False) == INVALID
    w.add(second, A)
    assert w.end(first) == FENCED, "a late one ends nothing (KAFKA-17754)"


def test_aborting_nothing_bumps_the_epoch() -> None:
    w = TransactionWorld(2)
    first = w.init()
    second = w.end(first, is_commit=False)
    assert second == bumped(first)
    assert (w.state, w.markers) == (State.COMPLETE_ABORT, [])
    assert w.end(first, is_commit=False) == second


@pytest.mark.parametrize("version", [1, 2])
def test_another_producer_ends_what_is_open(version: int) -> None:
    w = TransactionWorld(version)
    zombie = w.init()
    w.add(zombie, A)
    assert w.init() == CONCURRENT
    assert w.init() == CONCURRENT, "the markers are not written"
    (markers,) = w.mark()
    assert (markers.producer, markers.is_commit) == (bumped(zombie), False)
    living = w.init()
    assert living == bumped(zombie, 2)
    assert w.end(zombie) == FENCED
    assert w.add(zombie, B) == FENCED


def test_a_producer_goes_on_with_the_next_epoch() -> None:
    w = TransactionWorld(1)
    first = w.init()
    second = w.init(expected=first)
    assert second == bumped(first)
    assert w.init(expected=first) == second, "the answer got lost"
    assert w.init(expected=bumped(first, 5)) == FENCED
    third = w.init(expected=second)
    assert third == bumped(first, 2)
    assert w.init(expected=first) == FENCED
    assert w.init(expected=replace_id(first, 5)) == FENCED
    w.crash()
    assert w.init(expected=second) == FENCED, "as in Kafka, this is forgotten"
    assert w.init() == bumped(first, 3)
    assert w.init(expected=third) == FENCED


def replace_id(producer: ProducerIdentity, more: int) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(producer.id + more), producer.epoch)


def with_epoch(w: TransactionWorld, epoch: int) -> ProducerIdentity:
    """Let the producer have come a long way."""
    w.init()
    w.append(record_of(replace(w.known, producer_epoch=ProducerEpoch(epoch)), 1))
    w.commit()
    return w.known.producer


def test_epochs_run_out_between_transactions() -> None:
    w = TransactionWorld(1)
    last = with_epoch(w, EPOCH_MAX - 1)
    other = w.init(expected=last)
    assert other.id != last.id
    assert other.epoch == 0
    assert w.init(expected=last) == other, "the answer got lost"
    assert w.add(last, A) == MAPPING


def test_epochs_run_out_with_a_transaction() -> None:
    w = TransactionWorld(2)
    last = with_epoch(w, EPOCH_MAX - 1)
    w.add(last, A)
    other = w.end(last)
    assert other.id != last.id
    assert other.epoch == 0
    assert w.end(last) == CONCURRENT
    (markers,) = w.mark()
    assert markers.producer == (last.id, EPOCH_MAX)
    assert w.known.producer == other
    assert w.end(last) == other
    assert w.add(other, A) is DONE


@pytest.mark.parametrize("version", [1, 2])
def test_epochs_run_out_when_a_producer_is_fenced(version: int) -> None:
    w = TransactionWorld(version)
    last = with_epoch(w, EPOCH_MAX - 1)
    w.add(last, A)
    assert w.init() == CONCURRENT
    (markers,) = w.mark()
    assert markers.producer == (last.id, EPOCH_MAX)
    other = w.init()
    assert other.id != last.id


def test_a_restart_goes_on_with_the_markers() -> None:
    w = TransactionWorld()
    producer = w.init()
    w.add(producer, A)
    next_ = w.end(producer)
    w.crash()
    assert w.state is State.PREPARE_COMMIT
    (markers,) = w.mark()
    assert markers.partitions == {A}
    assert w.state is State.COMPLETE_COMMIT
    assert w.end(producer) == next_


def test_a_decision_that_is_lost_was_none() -> None:
    w = TransactionWorld()
    producer = w.init()
    w.add(producer, A)
    answers: list[object] = []
    w.submit(EndTransaction(ID, producer, is_commit=True, client_version=2), answers.append)
    assert not w.markers
    w.crash()
    assert (answers, w.state) == ([], State.ONGOING)


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_that_takes_too_long(version: int) -> None:
    w = TransactionWorld(version)
    producer = w.init(timeout_ms=30_000)
    w.add(producer, A)
    w.pass_time(29)
    assert w.state is State.ONGOING
    w.pass_time(11)
    w.commit()
    assert w.state is State.PREPARE_ABORT
    w.mark()
    assert w.end(producer) == (INVALID if version == 2 else FENCED)
    assert w.init(expected=producer) == (bumped(producer) if version == 2 else FENCED)


def test_a_clock_that_jumps_aborts_nothing() -> None:
    w = TransactionWorld()
    producer = w.init(timeout_ms=30_000)
    w.add(producer, A)
    w.pass_time(15, wall_seconds=1_000_000)
    assert w.state is State.ONGOING
    w.wall_ms = 0
    w.crash()
    w.pass_time(29)
    assert w.state is State.ONGOING
    w.pass_time(12)
    assert w.state is State.PREPARE_ABORT


def test_time_passes_while_the_coordinator_is_gone() -> None:
    w = TransactionWorld()
    w.add(w.init(timeout_ms=30_000), A)
    w.wall_ms += 31_000
    w.crash()
    w.pass_time(11)
    assert w.state is State.PREPARE_ABORT


def test_the_deadline_of_a_transaction_is_not_that_of_the_next() -> None:
    w = TransactionWorld(1)
    producer = w.init(timeout_ms=10_000)
    w.add(producer, A)
    w.pass_time(9)
    w.end(producer)
    w.mark()
    w.add(producer, A)
    w.pass_time(9)
    assert w.state is State.ONGOING


def test_ids_that_nobody_uses_are_forgotten() -> None:
    w = TransactionWorld(transactional_id_expiration_ms="7200000")
    producer = w.init()
    w.pass_time(3600)
    assert w.ask(DescribeTransaction(ID)).producer == producer
    w.pass_time(3700)
    w.commit()
    assert w.ask(DescribeTransaction(ID)) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert w.log[-1][1] is None
    w.crash()
    assert w.add(producer, A) == MAPPING
    assert w.init().id != producer.id


def test_ids_in_use_are_not_forgotten() -> None:
    w = TransactionWorld(transactional_id_expiration_ms="1000")
    w.add(w.init(timeout_ms=NEVER_MS), A)
    w.pass_time(100_000)
    assert w.state is State.ONGOING


def test_a_write_waits_for_the_end_of_the_transaction_before() -> None:
    w = TransactionWorld()
    first = w.init()
    w.add(first, A)
    second = w.end(first)
    answers: list[object] = []
    refused: list[Refusal] = []
    add = AddPartitions(ID, second, frozenset({B}), 2, may_wait=True)
    w.submit(add, answers.append)
    w.submit(add, answers.append)
    w.submit(replace(add, producer=first), refused.append)
    assert not answers
    w.mark()
    assert answers == [DONE, DONE]
    assert [each.code for each in refused] == [FENCED]
    assert (w.state, w.known.partitions) == (State.ONGOING, {B})


def test_who_waited_with_too_much_for_a_record_is_refused_and_nobody_else() -> None:
    w = TransactionWorld()
    first = w.init()
    w.add(first, A)
    second = w.end(first)
    w.context.record_bytes_max = 200
    answers: list[object] = []
    refused: list[Refusal] = []
    many = frozenset(TopicPartition("a", index) for index in range(100))
    w.submit(AddPartitions(ID, second, many, 2, may_wait=True), refused.append)
    w.submit(AddPartitions(ID, second, frozenset({B}), 2, may_wait=True), answers.append)
    w.mark()
    assert [each.code for each in refused] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert answers == [DONE]
    assert (w.state, w.known.partitions) == (State.ONGOING, {B})


def test_a_write_does_not_wait_for_ever() -> None:
    w = TransactionWorld()
    first = w.init()
    w.add(first, A)
    second = w.end(first)
    answers: list[object] = []
    w.submit(AddPartitions(ID, second, frozenset({B}), 2, may_wait=True), answers.append)
    w.pass_time(0.2)
    assert [each.code for each in answers] == [CONCURRENT]


def test_two_phase_commit_never_times_out() -> None:
    w = TransactionWorld()
    w.add(w.init(timeout_ms=NEVER_MS), A)
    w.pass_time(10_000_000)
    w.crash()
    w.pass_time(10_000_000)
    assert w.state is State.ONGOING


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("epoch", [0, EPOCH_MAX - 1])
def test_a_prepared_transaction_is_kept_for_who_knows_how_it_ends(version: int, epoch: int) -> None:
    w = TransactionWorld(version)
    writer = with_epoch(w, epoch) if epoch else w.init(timeout_ms=NEVER_MS)
    w.add(writer, A)
    kept = w.ask(InitProducer(ID, NEVER_MS, keeps_prepared=True))
    again = w.ask(InitProducer(ID, NEVER_MS, keeps_prepared=True))
    assert kept.ongoing == again.ongoing == writer
    assert again.producer == bumped(kept.producer)
    w.crash()
    assert w.end(writer) in (FENCED, MAPPING)
    assert w.end(kept.producer) == FENCED
    assert w.add(again.producer, B) == INVALID
    next_ = w.end(again.producer)
    (markers,) = w.mark()
    assert (markers.producer, markers.is_commit) == (bumped(writer), True)
    assert w.known.producer == next_
    assert next_.epoch > again.producer.epoch or version == 1
    assert w.add(next_, B) is DONE


def test_transactions_that_begin_all_the_time_keep_none_from_timing_out() -> None:
    w = TransactionWorld(1)
    w.add(w.init(timeout_ms=15_000), A)
    other = w.ask(InitProducer("other", 60_000)).producer
    for _ in range(6):
        w.pass_time(4)
        w.ask(AddPartitions("other", other, frozenset({B}), 0))
        w.ask(EndTransaction("other", other, is_commit=True, client_version=0))
        w.mark()
    assert w.state is State.COMPLETE_ABORT
