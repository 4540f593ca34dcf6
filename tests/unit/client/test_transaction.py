"""Which error means what, and what users are told: the model of transactions looks elsewhere."""

import pytest

from moldau.client import transaction_events as txn
from moldau.client.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    KafkaError,
    ProducerFencedError,
    RequestTimeoutError,
    TransactionAbortedError,
    TransactionError,
    TransactionStateError,
    UnreachableError,
)
from moldau.client.group_metadata import CommittedOffset, GroupMetadata
from moldau.client.outbox_events import OutboxProducer
from moldau.client.transaction import TransactionRules, Transactions, TxnState
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

PLACE = ("t", 0)
FIRST, SECOND = OutboxProducer(7, 0), OutboxProducer(7, 1)
OFFSETS = txn.SendOffsets(GroupMetadata("g"), {TopicPartition("t", 0): CommittedOffset(3)})


class Desk:
    """A producer that is initialized, and in a transaction if that is wanted."""

    def __init__(self, *, is_v2: bool = True, is_two_phase: bool = False) -> None:
        self.now = 0.0
        rules = TransactionRules(
            transactional_id="mill", is_two_phase=is_two_phase, backoff=0.1, backoff_max=1.0
        )
        self.machine = Transactions(rules, chance=lambda: 0.5)
        self.tell(txn.Initialize(is_v2))
        self.tell(txn.Replied([0], FIRST))

    def tell(self, event: txn.TransactionEvent) -> list[txn.TransactionEffect]:
        return self.machine.handle(event, self.now)

    def begin(self) -> None:
        """Open a transaction that the coordinator knows of."""
        self.tell(txn.Begin())
        self.tell(txn.PartitionWanted(PLACE))
        if not self.machine.is_v2:
            self.tell(txn.Replied([0]))

    def end(self, *, is_commit: bool) -> list[txn.TransactionEffect]:
        [drain] = self.tell(txn.End(is_commit))
        assert isinstance(drain, txn.Drain)
        return self.tell(txn.Drained(drain))

    def wait(self) -> list[txn.TransactionEffect]:
        assert self.machine.next_time is not None
        self.now = self.machine.next_time
        return self.tell(txn.TransactionTick())


def settled(
    effects: list[txn.TransactionEffect],
) -> tuple[txn.TransactionOperation, type[Exception] | None]:
    [found] = [each for each in effects if isinstance(each, txn.Settle)]
    return found.operation, None if found.error is None else type(found.error)


def test_with_version_2_nobody_is_asked_before_the_end_and_the_end_brings_an_epoch() -> None:
    desk = Desk()
    desk.tell(txn.Begin())
    assert desk.tell(txn.PartitionWanted(PLACE)) == [txn.Admit([PLACE])]
    assert desk.end(is_commit=True) == [txn.AskCoordinator(txn.AskEnd(FIRST, is_commit=True))]
    effects = desk.tell(txn.Replied([0], SECOND))
    assert effects == [txn.Renew(SECOND), txn.Settle(txn.TransactionOperation.COMMIT)]


def test_before_it_partitions_and_groups_are_announced_and_the_epoch_stays() -> None:
    desk = Desk(is_v2=False)
    desk.tell(txn.Begin())
    assert desk.tell(txn.PartitionWanted(PLACE)) == [
        txn.AskCoordinator(txn.AskPartitions(FIRST, [PLACE]))
    ]
    assert desk.tell(txn.PartitionWanted(("t", 1))) == []
    assert desk.tell(txn.PartitionWanted(("t", 2))) == []
    effects = desk.tell(txn.Replied([0]))
    together = txn.AskPartitions(FIRST, [("t", 1), ("t", 2)])
    assert effects == [txn.Admit([PLACE]), txn.AskCoordinator(together)]
    desk.tell(txn.Replied([0, 0]))
    assert desk.tell(OFFSETS) == [txn.AskCoordinator(txn.AskGroup(FIRST, "g"))]
    assert desk.tell(txn.Replied([0])) == [
        txn.AskCoordinator(txn.AskOffsets(FIRST, OFFSETS.group, OFFSETS.offsets))
    ]
    assert settled(desk.tell(txn.Replied([0]))) == (txn.TransactionOperation.SEND_OFFSETS, None)
    desk.end(is_commit=True)
    effects = desk.tell(txn.Replied([0]))
    assert effects == [txn.Renew(FIRST), txn.Settle(txn.TransactionOperation.COMMIT)]


@pytest.mark.parametrize("is_v2", [True, False])
def test_a_transaction_with_nothing_in_it_ends_without_a_question(*, is_v2: bool) -> None:
    desk = Desk(is_v2=is_v2)
    for is_commit in (True, False):
        desk.tell(txn.Begin())
        assert settled(desk.end(is_commit=is_commit))[1] is None
    assert desk.machine.state is TxnState.READY


@pytest.mark.parametrize(
    ("event", "code", "state", "kind"),
    [
        (OFFSETS, ErrorCode.UNKNOWN_MEMBER_ID, TxnState.FAILED, AbortableTransactionError),
        (OFFSETS, ErrorCode.GROUP_AUTHORIZATION_FAILED, TxnState.FAILED, AbortableTransactionError),
        (OFFSETS, ErrorCode.TRANSACTION_ABORTABLE, TxnState.FAILED, AbortableTransactionError),
        (OFFSETS, ErrorCode.INVALID_PRODUCER_EPOCH, TxnState.DEAD, ProducerFencedError),
        (OFFSETS, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, TxnState.DEAD, FatalTransactionError),
        (None, ErrorCode.PRODUCER_FENCED, TxnState.DEAD, ProducerFencedError),
        (None, ErrorCode.INVALID_TXN_STATE, TxnState.DEAD, FatalTransactionError),
        (None, ErrorCode.TRANSACTION_ABORTABLE, TxnState.FAILED, AbortableTransactionError),
        (None, ErrorCode.UNKNOWN_PRODUCER_ID, TxnState.FAILED, AbortableTransactionError),
    ],
)
def test_what_coordinators_refuse(
    event: txn.TransactionEvent | None, code: ErrorCode, state: TxnState, kind: type[Exception]
) -> None:
    desk = Desk()
    desk.begin()
    if event is None:
        desk.end(is_commit=True)
    else:
        desk.tell(event)
    assert settled(desk.tell(txn.Replied([code])))[1] is kind
    assert desk.machine.state is state
    with pytest.raises(kind):
        desk.tell(txn.Begin())


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TxnState.FAILED),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TxnState.DEAD),
        (ErrorCode.INVALID_TXN_STATE, TxnState.DEAD),
    ],
)
def test_what_is_refused_when_partitions_are_announced(code: ErrorCode, state: TxnState) -> None:
    desk = Desk(is_v2=False)
    desk.tell(txn.Begin())
    desk.tell(txn.PartitionWanted(PLACE))
    desk.tell(txn.Replied([code, ErrorCode.OPERATION_NOT_ATTEMPTED]))
    assert desk.machine.state is state
    assert code.name in str(desk.machine.refusal("send()"))


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), TxnState.FAILED),
        (RequestTimeoutError("late"), TxnState.FAILED),
        (KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH), TxnState.FAILED),
        (KafkaError(ErrorCode.PRODUCER_FENCED), TxnState.DEAD),
        (KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING), TxnState.DEAD),
        (TransactionAbortedError("another"), TxnState.OPEN),
    ],
)
def test_what_a_batch_that_failed_leaves(error: Exception, state: TxnState) -> None:
    desk = Desk()
    desk.begin()
    desk.tell(txn.BatchFailed(error))
    assert desk.machine.state is state


def test_an_abort_that_is_refused_ends_the_producer() -> None:
    desk = Desk()
    desk.begin()
    desk.end(is_commit=False)
    desk.tell(txn.Replied([ErrorCode.TRANSACTION_ABORTABLE]))
    assert desk.machine.state is TxnState.DEAD


def test_who_has_no_right_yet_can_initialize_again() -> None:
    desk = Desk()
    desk.machine = Transactions(desk.machine._rules, chance=lambda: 0.5)
    desk.tell(txn.Initialize(is_v2=True))
    refused = desk.tell(txn.Replied([ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]))
    assert settled(refused) == (txn.TransactionOperation.INITIALIZE, KafkaError)
    desk.tell(txn.Initialize(is_v2=True))
    assert settled(desk.tell(txn.Replied([0], FIRST)))[1] is None


def test_who_loses_the_right_to_the_next_epoch_cannot_go_on() -> None:
    desk = Desk(is_v2=False)
    desk.begin()
    desk.tell(txn.BatchFailed(RequestTimeoutError("late")))
    desk.end(is_commit=False)
    assert desk.tell(txn.Replied([0])) == [txn.AskCoordinator(txn.AskIdentity(FIRST))]
    desk.tell(txn.Replied([ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]))
    assert desk.machine.state is TxnState.DEAD


def test_what_may_pass_is_asked_again_and_the_end_of_the_last_transaction_soon() -> None:
    desk = Desk()
    desk.begin()
    desk.end(is_commit=True)
    question = txn.AskCoordinator(txn.AskEnd(FIRST, is_commit=True))
    assert desk.tell(txn.Replied([ErrorCode.CONCURRENT_TRANSACTIONS])) == []
    assert desk.machine.next_time == pytest.approx(0.02)
    assert desk.wait() == [question]
    desk.tell(txn.NotReplied(UnreachableError("cut")))
    assert "cut" in str(desk.machine.last_error)
    assert desk.wait() == [question]


@pytest.mark.parametrize("is_two_phase", [False, True])
def test_a_prepared_transaction_can_only_be_decided_on(is_two_phase: bool) -> None:
    desk = Desk(is_two_phase=is_two_phase)
    desk.begin()
    [drain] = desk.tell(txn.Prepare(may_expire=not is_two_phase))
    assert isinstance(drain, txn.Drain)
    assert settled(desk.tell(txn.Drained(drain))) == (txn.TransactionOperation.PREPARE, None)
    assert desk.machine.prepared == FIRST
    for event in (txn.Begin(), OFFSETS, txn.Prepare()):
        with pytest.raises(TransactionStateError, match="prepared"):
            desk.tell(event)
    assert desk.end(is_commit=True) == [txn.AskCoordinator(txn.AskEnd(FIRST, is_commit=True))]
    desk.tell(txn.Replied([0], SECOND))
    assert desk.machine.prepared is None


def test_what_an_earlier_producer_prepared_is_kept() -> None:
    desk = Desk(is_two_phase=True)
    desk.machine = Transactions(desk.machine._rules, chance=lambda: 0.5)
    [asked] = desk.tell(txn.Initialize(is_v2=True, keep_prepared=True))
    assert asked == txn.AskCoordinator(txn.AskIdentity(OutboxProducer(-1, -1), keep_prepared=True))
    desk.tell(txn.Replied([0], SECOND, prepared=FIRST))
    assert (desk.machine.state, desk.machine.prepared) == (TxnState.PREPARED, FIRST)
    assert desk.end(is_commit=False) == [txn.AskCoordinator(txn.AskEnd(SECOND, is_commit=False))]


def test_only_who_asked_for_two_phases_prepares() -> None:
    desk = Desk()
    desk.begin()
    with pytest.raises(TransactionError, match=r"transaction\.two\.phase\.commit\.enable"):
        desk.tell(txn.Prepare())


def test_an_abort_gives_up_offsets_that_are_on_their_way() -> None:
    desk = Desk()
    desk.begin()
    desk.tell(OFFSETS)
    effects = desk.tell(txn.End(is_commit=False))
    assert settled(effects) == (txn.TransactionOperation.SEND_OFFSETS, TransactionAbortedError)
    [drain] = [each for each in effects if isinstance(each, txn.Drain)]
    assert desk.tell(txn.Drained(drain)) == [], "the coordinator is asked one thing at a time"
    assert desk.tell(txn.NotReplied(UnreachableError("cut"))) == [
        txn.AskCoordinator(txn.AskEnd(FIRST, is_commit=False))
    ]
