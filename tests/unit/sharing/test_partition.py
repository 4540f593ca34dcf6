"""A share partition: what is acquired, acknowledged, released, and what is refused."""

import pytest

from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.sharing.limits import AcquisitionWish, ShareLimits
from moldau.sharing.partition import SharePartition
from moldau.sharing.states import (
    Acknowledgement,
    AcknowledgementKind,
    FetchedBatches,
    RecordState,
    ShareSpan,
    StateBatch,
    StateWrite,
)

LIMITS = ShareLimits(in_flight_max=100, delivery_count_max=5, lock_seconds=30.0)
ALL = AcquisitionWish(records_max=500, batch_size=500, is_strict=False)

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
ACCEPT, RELEASE, REJECT = (
    AcknowledgementKind.ACCEPT,
    AcknowledgementKind.RELEASE,
    AcknowledgementKind.REJECT,
)


def spans(*pairs: tuple[int, int]) -> list[ShareSpan]:
    return [ShareSpan(Offset(first), Offset(last)) for first, last in pairs]


class Shared:
    """A share partition over batches of ten, unless others are named."""

    def __init__(self, limits: ShareLimits = LIMITS, start: int = 0) -> None:
        self.partition = SharePartition(Offset(start), 1)
        self.limits = limits
        self.now = 0.0

    def acquire(
        self,
        member: str = "a",
        wish: AcquisitionWish = ALL,
        *pairs: tuple[int, int],
        aborted: tuple[tuple[int, int], ...] = (),
    ) -> list[tuple[int, int, int]]:
        batches = spans(*(pairs or ((0, 9), (10, 19), (20, 29))))
        offset = self.partition.next_fetch_offset
        fetched = FetchedBatches(
            offset, [each for each in batches if each.last >= offset], spans(*aborted)
        )
        return [
            tuple(each)
            for each in self.partition.acquire(
                member, fetched, wish=wish, limits=self.limits, now=self.now
            )
        ]

    def say(
        self, member: str, first: int, last: int, *types: AcknowledgementKind
    ) -> StateWrite | None:
        said = [Acknowledgement(Offset(first), Offset(last), types)]
        return self.partition.acknowledge(member, said, limits=self.limits, now=self.now)

    def acknowledge(self, member: str, first: int, last: int, *types: AcknowledgementKind) -> None:
        write = self.say(member, first, last, *types)
        assert write is not None
        self.partition.written(write.number, is_recorded=True)

    @property
    def states(self) -> list[tuple[int, int, RecordState, int]]:
        return [tuple(each) for each in self.partition.states()]


def test_records_are_acquired_once() -> None:
    shared = Shared()
    assert shared.acquire("a") == [(0, 29, 1)]
    assert shared.partition.next_fetch_offset == 30
    assert shared.acquire("b") == []


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (AcquisitionWish(5, 500, is_strict=True), [(0, 4, 1)]),
        (AcquisitionWish(5, 500, is_strict=False), [(0, 9, 1)]),
        (AcquisitionWish(11, 500, is_strict=False), [(0, 19, 1)]),
        (AcquisitionWish(10, 500, is_strict=False), [(0, 9, 1)]),
        (AcquisitionWish(500, 10, is_strict=False), [(0, 9, 1), (10, 19, 1), (20, 29, 1)]),
        (AcquisitionWish(500, 11, is_strict=False), [(0, 19, 1), (20, 29, 1)]),
    ],
)
def test_as_much_as_is_asked_for(
    wish: AcquisitionWish, expected: list[tuple[int, int, int]]
) -> None:
    assert Shared().acquire("a", wish) == expected


def test_no_more_than_may_be_in_flight() -> None:
    shared = Shared(LIMITS._replace(in_flight_max=12))
    assert shared.acquire("a") == [(0, 19, 1)]
    assert not shared.partition.can_acquire(shared.limits)
    assert shared.acquire("b") == []
    # What is released can be had all the same.
    shared.acknowledge("a", 5, 6, RELEASE)
    assert shared.partition.can_acquire(shared.limits)
    assert shared.acquire("b") == [(5, 6, 2)]
    # And the window moves with its start.
    shared.acknowledge("a", 0, 4, ACCEPT)
    shared.acknowledge("b", 5, 6, ACCEPT)
    shared.acknowledge("a", 7, 19, ACCEPT)
    assert shared.acquire("b") == [(20, 29, 1)]


def test_acknowledged_records_are_done_when_they_are_stored() -> None:
    shared = Shared()
    shared.acquire("a")
    write = shared.say("a", 0, 9, ACCEPT)
    assert write == StateWrite(
        1, 1, Offset(0), 10, (StateBatch(Offset(0), Offset(9), ACKNOWLEDGED, 1),)
    )
    assert shared.partition.start_offset == 0
    with pytest.raises(Refusal) as refused:
        shared.say("a", 0, 9, ACCEPT)
    assert refused.value.code == ErrorCode.INVALID_RECORD_STATE
    shared.partition.written(1, is_recorded=True)
    assert shared.partition.start_offset == 10


def test_what_is_not_stored_is_still_acquired() -> None:
    shared = Shared()
    shared.acquire("a")
    write = shared.say("a", 0, 9, ACCEPT)
    assert write is not None
    shared.partition.written(write.number, is_recorded=False)
    assert shared.states == [(0, 9, ACQUIRED, 1), (10, 29, ACQUIRED, 1)]
    shared.acknowledge("a", 0, 9, REJECT)
    assert shared.partition.start_offset == 10


def test_each_offset_may_be_said_something_else_of() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 4))
    shared.acknowledge("a", 0, 4, ACCEPT, RELEASE, RELEASE, REJECT, AcknowledgementKind.GAP)
    assert shared.partition.start_offset == 1
    assert shared.states == [(1, 2, AVAILABLE, 1), (3, 4, ARCHIVED, 1)]
    assert shared.partition.delivery_complete_count == 2


@pytest.mark.parametrize(
    ("member", "first", "last", "code"),
    [
        ("b", 0, 9, ErrorCode.INVALID_RECORD_STATE),
        ("a", 5, 15, ErrorCode.INVALID_RECORD_STATE),  # b has a part of it
        ("a", 20, 25, ErrorCode.INVALID_REQUEST),
        ("a", 0, 20, ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_what_one_has_can_be_acknowledged(
    member: str, first: int, last: int, code: ErrorCode
) -> None:
    shared = Shared()
    shared.acquire("a", AcquisitionWish(10, 10, is_strict=True), (0, 9))
    shared.acquire("b", AcquisitionWish(10, 10, is_strict=True), (10, 19))
    before = shared.states
    with pytest.raises(Refusal) as refused:
        shared.say(member, first, last, ACCEPT)
    assert refused.value.code == code
    assert shared.states == before


def test_all_or_nothing_is_acknowledged() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 9))
    said = [
        Acknowledgement(Offset(0), Offset(4), (ACCEPT,)),
        Acknowledgement(Offset(8), Offset(12), (ACCEPT,)),
    ]
    with pytest.raises(Refusal):
        shared.partition.acknowledge("a", said, limits=LIMITS, now=0.0)
    assert shared.states == [(0, 9, ACQUIRED, 1)]


def test_nothing_is_acquired_yet() -> None:
    with pytest.raises(Refusal) as refused:
        Shared().say("a", 0, 0, ACCEPT)
    assert refused.value.code == ErrorCode.INVALID_RECORD_STATE


def test_what_is_before_the_start_is_passed_over() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 9))
    shared.partition.log_begins_at(Offset(5))
    assert shared.say("a", 0, 4, ACCEPT) is None
    shared.acknowledge("a", 3, 9, ACCEPT)
    assert shared.partition.start_offset == 10


def test_locks_end() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 9))
    shared.now = 10.0
    shared.acquire("b", ALL, (10, 19))
    assert shared.partition.next_deadline == 30.0
    assert shared.partition.expire(LIMITS, 29.9) is None
    write = shared.partition.expire(LIMITS, 30.0)
    assert write is not None
    assert write.batches == ((0, 9, AVAILABLE, 1),)
    assert shared.partition.next_deadline == 40.0
    assert shared.acquire("b", ALL, (0, 9)) == [(0, 9, 2)]


def test_locks_are_renewed() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 9))
    shared.now = 20.0
    assert shared.say("a", 0, 4, AcknowledgementKind.RENEW) is None
    write = shared.partition.expire(LIMITS, 31.0)
    assert write is not None
    assert write.batches == ((5, 9, AVAILABLE, 1),)
    shared.limits = LIMITS._replace(may_renew=False)
    with pytest.raises(Refusal):
        shared.say("a", 0, 4, AcknowledgementKind.RENEW)


def test_a_lock_that_ends_while_its_acknowledgement_is_stored_waits_for_that() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 9))
    write = shared.say("a", 0, 9, ACCEPT)
    assert write is not None
    assert shared.partition.expire(LIMITS, 60.0) is None
    shared.partition.written(write.number, is_recorded=False)
    assert shared.partition.next_deadline == 30.0
    assert shared.partition.expire(LIMITS, 60.0) is not None
    assert shared.states == [(0, 9, AVAILABLE, 1)]


def test_a_record_is_delivered_no_more_often_than_it_may() -> None:
    shared = Shared(LIMITS._replace(delivery_count_max=3))
    for count in (1, 2, 3):
        assert shared.acquire("a", ALL, (0, 0)) == [(0, 0, count)]
        shared.acknowledge("a", 0, 0, RELEASE)
    assert shared.partition.start_offset == 1
    assert shared.acquire("a", ALL, (0, 0)) == []


def test_what_fails_often_is_delivered_in_smaller_and_smaller_numbers() -> None:
    shared = Shared(LIMITS._replace(delivery_count_max=6))
    sizes = []
    for _ in range(6):
        ((first, last, _),) = shared.acquire("a", ALL, (0, 15))
        sizes.append(last - first + 1)
        shared.acknowledge("a", first, last, RELEASE)
    assert sizes == [16, 16, 16, 8, 2, 1]


def test_a_member_that_goes_gives_back_what_it_has() -> None:
    shared = Shared()
    shared.acquire("a", AcquisitionWish(10, 10, is_strict=True), (0, 9))
    shared.acquire("b", AcquisitionWish(10, 10, is_strict=True), (10, 19))
    write = shared.partition.release("a", LIMITS)
    assert write is not None
    assert shared.partition.next_fetch_offset == 20
    shared.partition.written(write.number, is_recorded=True)
    assert shared.states == [(0, 9, AVAILABLE, 1), (10, 19, ACQUIRED, 1)]
    assert shared.partition.release("a", LIMITS) is None


def test_records_that_were_compacted_away_are_done() -> None:
    shared = Shared()
    assert shared.acquire("a", ALL, (3, 5), (8, 9)) == [(3, 9, 1)]
    assert shared.partition.start_offset == 3
    shared.acknowledge("a", 3, 9, RELEASE)
    # Compaction went on meanwhile.
    assert shared.acquire("a", ALL, (5, 5), (9, 9)) == [(5, 5, 2), (9, 9, 2)]
    assert shared.partition.start_offset == 5


def test_aborted_records_are_done() -> None:
    shared = Shared()
    acquired = shared.acquire("a", ALL, (0, 4), (5, 9), (10, 14), aborted=((5, 9),))
    assert acquired == [(0, 4, 1), (10, 14, 1)]
    assert shared.acquire("b", ALL, (15, 19), aborted=((15, 19),)) == []
    shared.acknowledge("a", 0, 4, ACCEPT)
    assert shared.partition.start_offset == 10


def test_the_log_begins_later() -> None:
    shared = Shared()
    shared.acquire("a", ALL, (0, 9))
    shared.partition.log_begins_at(Offset(50))
    assert (shared.partition.start_offset, shared.partition.end_offset) == (50, 50)
    assert shared.states == []


def test_what_was_stored_is_loaded() -> None:
    stored = [
        StateBatch(Offset(5), Offset(9), ACKNOWLEDGED, 1),
        StateBatch(Offset(15), Offset(19), AVAILABLE, 2),
        StateBatch(Offset(20), Offset(24), ARCHIVED, 2),
    ]
    partition = SharePartition(Offset(5), 3, stored)
    # What lies between was acquired when the leader went, and is nobody's now.
    assert [tuple(each) for each in partition.states()] == [
        (10, 14, AVAILABLE, 0),
        (15, 19, AVAILABLE, 2),
        (20, 24, ARCHIVED, 2),
    ]
    assert partition.next_fetch_offset == 10


def test_what_is_given_up_is_buried_first() -> None:
    shared = Shared(LIMITS._replace(has_dead_letters=True, delivery_count_max=2))
    shared.acquire("a", ALL, (0, 9))
    shared.acknowledge(
        "a", 0, 9, *[REJECT] * 3, *[ACCEPT] * 4, AcknowledgementKind.GAP, *[RELEASE] * 2
    )
    assert shared.states == [
        (0, 2, ARCHIVING, 1),
        (3, 6, ACKNOWLEDGED, 1),
        (7, 7, ARCHIVED, 1),
        (8, 9, AVAILABLE, 1),
    ]
    (rejected,) = shared.partition.take_dying()
    assert shared.partition.take_dying() == []
    assert shared.acquire("a", ALL, (8, 9)) == [(8, 9, 2)]
    assert shared.partition.expire(shared.limits, 31.0) is not None
    (given_up,) = shared.partition.take_dying()
    assert (given_up.first, given_up.last, given_up.delivery_count) == (8, 9, 2)
    assert shared.partition.start_offset == 0
    write = shared.partition.died(rejected)
    assert write is not None
    assert write.batches == ((0, 2, ARCHIVED, 1),)
    assert shared.partition.start_offset == 8
    assert shared.partition.died(given_up) is not None
    assert shared.partition.start_offset == 10
    assert shared.partition.died(given_up) is None


def test_a_burial_goes_on_after_a_restart() -> None:
    dying = StateBatch(Offset(0), Offset(4), ARCHIVING, 1)
    partition = SharePartition(Offset(0), 1, [dying])
    assert partition.start_offset == 0
    assert partition.take_dying() == [dying]
