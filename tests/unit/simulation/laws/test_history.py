"""The laws of histories: what breaks them is found, and what does not is left alone."""

from collections.abc import Callable

import pytest

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.delivery import Deliveries, SharedRecord
from moldau.simulation.laws.history import History, OperationEnd, ReaderNote, TransactionNote
from moldau.simulation.laws.registers import Registers
from moldau.simulation.laws.violation import LawViolation

P = TopicPartition("rivers", 0)


def sent(
    history: History,
    value: bytes,
    offset: int,
    transaction: TransactionNote | None = None,
    outcome: OperationEnd = OperationEnd.OK,
) -> None:
    send = history.begin_send("p", P, value, is_idempotent=True, transaction=transaction)
    history.end_send(send, outcome, offset)


def reading(history: History, start: int = 0, *, is_committed: bool = False) -> ReaderNote:
    reader = history.reader("c", is_committed=is_committed)
    reader.seek(P, start)
    return reader


def one_offset_has_two_values(history: History) -> None:
    sent(history, b"a", 0)
    sent(history, b"b", 0)


def one_value_has_two_offsets(history: History) -> None:
    sent(history, b"a", 0)
    reading(history).polled(P, 1, b"a")


def a_value_comes_from_nowhere(history: History) -> None:
    reading(history).polled(P, 0, b"a")


def a_refused_send_is_read(history: History) -> None:
    sent(history, b"a", -1, outcome=OperationEnd.FAILED)
    reading(history).polled(P, 0, b"a")


def a_read_send_is_refused(history: History) -> None:
    send = history.begin_send("p", P, b"a", is_idempotent=True)
    reading(history).polled(P, 0, b"a")
    history.end_send(send, OperationEnd.FAILED)


def a_reader_goes_back(history: History) -> None:
    sent(history, b"a", 0)
    reader = reading(history)
    reader.polled(P, 0, b"a")
    reader.polled(P, 0, b"a")


def a_reader_passes_over_a_record(history: History) -> None:
    reader = reading(history)
    for offset in range(3):
        sent(history, b"%d" % offset, offset)
    reader.polled(P, 0, b"0")
    reader.polled(P, 2, b"2")
    history.check_reads()


def an_aborted_record_is_read(history: History) -> None:
    transaction = history.begin_transaction("p")
    sent(history, b"a", 0, transaction)
    transaction.is_ending = True
    history.end_transaction(transaction, OperationEnd.FAILED)
    reading(history, is_committed=True).polled(P, 0, b"a")


def a_record_is_read_and_aborted(history: History) -> None:
    transaction = history.begin_transaction("p")
    sent(history, b"a", 0, transaction)
    transaction.is_ending = True
    reading(history, is_committed=True).polled(P, 0, b"a")
    history.end_transaction(transaction, OperationEnd.FAILED)


def a_record_is_read_before_its_commit(history: History) -> None:
    sent(history, b"a", 0, history.begin_transaction("p"))
    reading(history, is_committed=True).polled(P, 0, b"a")


def an_acknowledged_record_is_gone(history: History) -> None:
    sent(history, b"a", 0)
    history.check_end({P: []})


def half_a_transaction_is_there(history: History) -> None:
    transaction = history.begin_transaction("p")
    sent(history, b"a", 0, transaction)
    sent(history, b"b", 1, transaction)
    history.end_transaction(transaction, OperationEnd.UNKNOWN)
    history.check_end({P: [(1, b"b")]})


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (one_offset_has_two_values, "inconsistent offset"),
        (one_value_has_two_offsets, "duplicate"),
        (a_value_comes_from_nowhere, "invented"),
        (a_refused_send_is_read, "phantom"),
        (a_read_send_is_refused, "phantom"),
        (a_reader_goes_back, "non-monotonic poll"),
        (a_reader_passes_over_a_record, "poll skip"),
        (an_aborted_record_is_read, "aborted read"),
        (a_record_is_read_and_aborted, "aborted read"),
        (a_record_is_read_before_its_commit, "precommitted read"),
        (an_acknowledged_record_is_gone, "lost write"),
        (half_a_transaction_is_there, "torn transaction"),
    ],
)
def test_broken_laws_are_named(broken: Callable[[History], None], law: str) -> None:
    with pytest.raises(LawViolation) as caught:
        broken(History())
    assert caught.value.law == law


def test_what_is_allowed() -> None:
    history = History()
    reader, committed = reading(history), reading(history, is_committed=True)
    sent(history, b"a", 0)
    sent(history, b"lost?", -1, outcome=OperationEnd.UNKNOWN)
    aborted, kept = history.begin_transaction("p"), history.begin_transaction("p")
    sent(history, b"x", 1, aborted)
    sent(history, b"k", 3, kept)
    aborted.is_ending = kept.is_ending = True
    history.end_transaction(aborted, OperationEnd.FAILED)
    history.end_transaction(kept, OperationEnd.UNKNOWN)
    for offset, value in ((0, b"a"), (1, b"x"), (3, b"k"), (5, b"lost?")):
        reader.polled(P, offset, value)
        if value != b"x":
            committed.polled(P, offset, value)
    history.check_reads()
    history.check_end({P: [(0, b"a"), (3, b"k"), (5, b"lost?")]})


def test_deleted_records_may_be_gone() -> None:
    history = History()
    sent(history, b"a", 0)
    sent(history, b"b", 1)
    history.may_be_gone(P, 1)
    reader = reading(history)
    reader.polled(P, 1, b"b")
    history.check_reads()
    history.check_end({P: [(1, b"b")]})


# Registers.


def test_a_read_may_return_what_was_not_surely_replaced() -> None:
    registers: Registers[str, int] = Registers("offset", -1)
    registers.read("k", -1, begun=0)
    first = registers.begin_write("k", 1, now=1)
    registers.read("k", -1, begun=2)  # not acknowledged yet
    registers.read("k", 1, begun=2)
    registers.end_write("k", first, now=3)
    unknown = registers.begin_write("k", 2, now=4)
    for value in (1, 2):
        registers.read("k", value, begun=9)
    assert unknown.ended > 9
    last = registers.begin_write("k", 3, now=10)
    registers.end_write("k", last, now=11)
    registers.read("k", 2, begun=12)  # a late effect of the one whose end is unknown
    for stale in (-1, 1):
        with pytest.raises(LawViolation, match="stale read"):
            registers.read("k", stale, begun=12)


def test_a_read_that_began_before_the_acknowledgement_may_be_older() -> None:
    registers: Registers[str, int] = Registers("offset", -1)
    write = registers.begin_write("k", 1, now=1)
    registers.end_write("k", write, now=5)
    registers.read("k", 1, begun=6)
    second = registers.begin_write("k", 2, now=7)
    registers.end_write("k", second, now=9)
    registers.read("k", 1, begun=8)
    with pytest.raises(LawViolation):
        registers.read("k", 1, begun=10)


def test_a_refused_write_is_never_read() -> None:
    registers: Registers[str, int] = Registers("offset", -1)
    registers.refuse_write("k", registers.begin_write("k", 1, now=1))
    with pytest.raises(LawViolation):
        registers.read("k", 1, begun=2)


def test_a_reader_begins_with_one_of_what_may_be_committed() -> None:
    registers: Registers[str, int] = Registers("offset", -1)
    registers.read_one_of("k", (0, -1), begun=1)
    registers.end_write("k", registers.begin_write("k", 5, now=1), now=2)
    registers.read_one_of("k", (5,), begun=3)
    with pytest.raises(LawViolation, match=r"stale read: offset of k is 0 or -1, and may be \[5\]"):
        registers.read_one_of("k", (0, -1), begun=3)


# Share groups.

R = SharedRecord("readers", P, 7)


def test_a_record_has_one_member_at_a_time() -> None:
    deliveries = Deliveries()
    deliveries.deliver(R, "a", asked=0, now=1, lock_seconds=30)
    with pytest.raises(LawViolation, match="shared twice"):
        deliveries.deliver(R, "b", asked=2, now=29, lock_seconds=30)
    deliveries.deliver(R, "b", asked=2, now=31, lock_seconds=30)
    deliveries.let_go(R)
    deliveries.deliver(R, "a", asked=32, now=33, lock_seconds=30)


def test_a_record_that_was_accepted_is_not_delivered_again() -> None:
    deliveries = Deliveries()
    deliveries.deliver(R, "a", asked=0, now=1, lock_seconds=30)
    deliveries.accept(R, "a")
    assert deliveries.accepted == 1
    deliveries.deliver(R, "b", asked=0, now=40, lock_seconds=30)  # an answer on its way for long
    with pytest.raises(LawViolation, match="redelivery"):
        deliveries.deliver(R, "b", asked=2, now=3, lock_seconds=30)


def test_records_are_in_the_order_of_their_sends() -> None:
    history = History()
    sent(history, b"a", 1)
    sent(history, b"b", 0)
    with pytest.raises(LawViolation, match="order: b'a' of p in rivers-0 is at 1, and b'b'"):
        history.check_end({P: [(0, b"b"), (1, b"a")]})
