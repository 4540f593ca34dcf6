from moldau.client.errors import KafkaError, UnreachableError
from moldau.client.outbox import EPOCH_MAX, Outbox, OutboxRules
from moldau.client.outbox_events import (
    Answered,
    BatchOutcome,
    Closed,
    Delivered,
    Failed,
    Identify,
    IdentityFound,
    LeadersFound,
    Lost,
    NotIdentified,
    OutboxEffect,
    OutboxEvent,
    OutboxProducer,
    OutboxTick,
    Refresh,
    Request,
    Send,
)
from moldau.protocol.errors import ErrorCode
from tests.unit.client.outbox_world import TOPIC, Parcel

OK = BatchOutcome(ErrorCode.NONE, 0)
OUT_OF_ORDER = BatchOutcome(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


class Desk:
    """An outbox that knows who it is and that node 1 leads partition 0."""

    def __init__(self, epoch: int = 0, *, is_identified: bool = True, retries: int = 100) -> None:
        self.now = 0.0
        rules = OutboxRules(
            is_idempotent=True,
            in_flight_max=5,
            request_bytes_max=1000,
            retries=retries,
            delivery_timeout=120.0,
            backoff=0.1,
            backoff_max=1.0,
        )
        self.outbox = Outbox(rules, split=lambda _: [], chance=lambda: 0.5)
        self.tell(LeadersFound(TOPIC, {0: 1}))
        if is_identified:
            self.tell(IdentityFound(OutboxProducer(7, epoch)))

    def tell(self, event: OutboxEvent) -> list[OutboxEffect]:
        return self.outbox.handle(event, self.now)

    def send(self, *values: int) -> list[Request]:
        return _requests(self.tell(Closed([Parcel(0, list(values), self.now)])))

    def wait(self, seconds: float) -> list[OutboxEffect]:
        self.now += seconds
        return self.tell(OutboxTick())


def _requests(effects: list[OutboxEffect]) -> list[Request]:
    return [effect.request for effect in effects if isinstance(effect, Send)]


def _stamp(request: Request) -> tuple[OutboxProducer, int]:
    [shipment] = request.shipments
    return shipment.identity, shipment.sequence


def test_sequences_go_on_from_batch_to_batch() -> None:
    desk = Desk()
    [first] = desk.send(1, 2)
    assert desk.send(3) == [], "the broker does not know us yet"
    [delivered, sent] = desk.tell(Answered(first, [OK]))
    assert isinstance(delivered, Delivered)
    [third] = desk.send(4)
    assert isinstance(sent, Send)
    assert [_stamp(each)[1] for each in (first, sent.request, third)] == [0, 2, 3]


def test_the_first_out_of_order_begins_an_epoch() -> None:
    desk = Desk()
    [first] = desk.send(1)
    desk.tell(Answered(first, [OK]))
    [second], [third] = desk.send(2), desk.send(3)
    assert desk.tell(Answered(second, [OUT_OF_ORDER])) == [], "the third is in flight"
    assert desk.tell(Answered(third, [OUT_OF_ORDER])) == [], "not at once"
    [again] = _requests(desk.wait(0.2))
    assert _stamp(again) == (OutboxProducer(7, 1), 0)
    assert again.shipments[0].batch is second.shipments[0].batch
    [behind] = _requests(desk.tell(Answered(again, [OK])))
    assert _stamp(behind) == (OutboxProducer(7, 1), 1)


def test_the_last_epoch_is_followed_by_another_producer() -> None:
    desk = Desk(EPOCH_MAX)
    [first] = desk.send(1)
    desk.tell(Answered(first, [BatchOutcome(ErrorCode.UNKNOWN_PRODUCER_ID)]))
    assert desk.wait(0.2) == [Identify()]
    [again] = _requests(desk.tell(IdentityFound(OutboxProducer(8, 0))))
    assert _stamp(again) == (OutboxProducer(8, 0), 0)


def test_a_batch_that_is_stored_already_is_delivered() -> None:
    desk = Desk()
    [first] = desk.send(1)
    outcome = BatchOutcome(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    [delivered] = desk.tell(Answered(first, [outcome]))
    assert delivered == Delivered(first.shipments[0].batch, -1, -1)


def test_a_lost_request_is_sent_again_when_the_leader_is_known() -> None:
    desk = Desk()
    [first] = desk.send(1)
    assert desk.tell(Lost(first, UnreachableError("gone"))) == [Refresh(TOPIC)]
    assert desk.tell(LeadersFound(TOPIC, {0: 2})) == [], "not at once"
    [again] = _requests(desk.wait(0.2))
    assert (again.node, *_stamp(again)) == (2, *_stamp(first))


def test_retries_end() -> None:
    desk = Desk(retries=1)
    [first] = desk.send(1)
    refused = [BatchOutcome(ErrorCode.NOT_ENOUGH_REPLICAS)]
    assert desk.tell(Answered(first, refused)) == []
    [again] = _requests(desk.wait(0.2))
    [failed] = desk.tell(Answered(again, refused))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, KafkaError)


def test_what_is_late_names_the_last_error() -> None:
    desk = Desk()
    [first] = desk.send(1)
    desk.tell(Lost(first, UnreachableError("it burns")))
    assert desk.outbox.next_time is not None
    [failed] = [each for each in desk.wait(120.0) if isinstance(each, Failed)]
    assert str(failed.error).endswith("delivery.timeout.ms=120000: it burns")


def test_an_answer_after_the_end_is_overlooked() -> None:
    desk = Desk()
    [first] = desk.send(1)
    assert [type(each) for each in desk.wait(121.0)] == [Failed]
    assert desk.tell(Answered(first, [OK])) == []
    [following] = desk.send(2)
    assert _stamp(following) == (OutboxProducer(7, 1), 0), (
        "whether the first is stored is not known"
    )


def test_nothing_is_sent_by_nobody() -> None:
    desk = Desk(is_identified=False)
    error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    batch = Parcel(0, [1], desk.now)
    assert desk.tell(Closed([batch])) == [Identify()]
    assert desk.tell(NotIdentified(error, is_final=False)) == []
    assert desk.wait(0.2) == [Identify()]
    assert desk.tell(NotIdentified(error, is_final=True)) == [Failed(batch, error)]


def test_a_broker_that_throttles_is_left_alone() -> None:
    desk = Desk()
    [first] = desk.send(1)
    desk.tell(Answered(first, [OK], throttle_ms=500))
    assert desk.send(2) == []
    assert len(_requests(desk.wait(0.6))) == 1
