"""The outbox of a transactional producer: what waits for the transaction, and what ends with it."""

from moldau.client.errors import KafkaError, TransactionAbortedError, UnreachableError
from moldau.client.outbox import Outbox, OutboxRules
from moldau.client.outbox_events import (
    Abandoned,
    Answered,
    BatchOutcome,
    Closed,
    Delivered,
    Enlist,
    Enlisted,
    Failed,
    LeadersFound,
    Lost,
    OutboxEffect,
    OutboxEvent,
    OutboxProducer,
    Renewed,
    Request,
    Send,
)
from moldau.protocol.errors import ErrorCode
from tests.unit.client.outbox_world import TOPIC, Parcel

PLACE = (TOPIC, 0)
OK = BatchOutcome(ErrorCode.NONE, 0)
ABORTED = TransactionAbortedError("aborted")


class Desk:
    """A producer in a transaction, by itself in one that has partition 0."""

    def __init__(self, *, is_enlisted: bool = True) -> None:
        rules = OutboxRules(
            is_idempotent=True,
            in_flight_max=5,
            request_bytes_max=1000,
            retries=100,
            delivery_timeout=120.0,
            backoff=0.1,
            backoff_max=1.0,
            is_transactional=True,
        )
        self.outbox = Outbox(rules, split=lambda _: [], chance=lambda: 0.5)
        self.tell(LeadersFound(TOPIC, {0: 1, 1: 1}))
        self.tell(Renewed(OutboxProducer(7, 0)))
        if is_enlisted:
            self.tell(Enlisted([PLACE]))

    def tell(self, event: OutboxEvent) -> list[OutboxEffect]:
        return self.outbox.handle(event, 0.0)

    def close(self, *values: int, partition: int = 0) -> list[OutboxEffect]:
        return self.tell(Closed([Parcel(partition, list(values), 0.0)]))

    def send(self, *values: int) -> Request:
        [effect] = self.close(*values)
        assert isinstance(effect, Send)
        return effect.request


def test_a_partition_is_asked_for_once_and_waits() -> None:
    desk = Desk(is_enlisted=False)
    assert desk.close(1) == [Enlist(PLACE)]
    assert desk.close(2) == []
    [sent] = desk.tell(Enlisted([PLACE]))
    assert isinstance(sent, Send)


def test_the_next_transaction_asks_again_and_goes_on_counting_in_the_same_epoch() -> None:
    desk = Desk()
    desk.tell(Answered(desk.send(1, 2), [OK]))
    desk.tell(Renewed(OutboxProducer(7, 0)))
    assert desk.close(3) == [Enlist(PLACE)]
    [sent] = desk.tell(Enlisted([PLACE]))
    assert isinstance(sent, Send)
    assert sent.request.shipments[0].sequence == 2


def test_a_new_epoch_counts_from_zero() -> None:
    desk = Desk()
    desk.tell(Answered(desk.send(1, 2), [OK]))
    desk.tell(Renewed(OutboxProducer(7, 1)))
    desk.tell(Enlisted([PLACE]))
    [shipment] = desk.send(3).shipments
    assert (shipment.identity, shipment.sequence) == (OutboxProducer(7, 1), 0)


def test_one_batch_that_is_given_up_ends_all_that_is_not_in_flight() -> None:
    desk = Desk()
    first = desk.send(1)
    desk.close(2)
    desk.close(3, partition=1)
    effects = desk.tell(Answered(first, [BatchOutcome(ErrorCode.INVALID_RECORD)]))
    assert all(isinstance(each, Failed) for each in effects)
    errors = [each.error for each in effects if isinstance(each, Failed)]
    assert isinstance(errors[0], KafkaError)
    assert [type(each) for each in errors[1:]] == [TransactionAbortedError] * 2
    [late] = desk.close(4)
    assert isinstance(late, Failed), "nothing is sent any more"


def test_a_broken_sequence_is_the_end_because_the_epoch_is_the_coordinator_s() -> None:
    desk = Desk()
    desk.tell(Answered(desk.send(1), [OK]))
    broken = BatchOutcome(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    [failed] = desk.tell(Answered(desk.send(2), [broken]))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, KafkaError)


def test_what_is_in_flight_at_an_abort_is_waited_for_and_not_sent_again() -> None:
    desk = Desk()
    desk.tell(Answered(desk.send(1), [OK]))
    second, third = desk.send(2), desk.send(3)
    assert desk.tell(Abandoned(ABORTED)) == []
    [delivered] = desk.tell(Answered(second, [OK]))
    assert isinstance(delivered, Delivered)
    [failed] = desk.tell(Lost(third, UnreachableError("cut")))
    assert isinstance(failed, Failed)
    assert failed.error is ABORTED
    assert desk.tell(Renewed(OutboxProducer(7, 1))) == []
