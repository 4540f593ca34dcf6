from moldau.broker.handlers.init_producer_id import handle_init_producer_id
from moldau.broker.producer_ids import LEFT_MIN
from moldau.controller.commands import AllocateProducerIds
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.stored.cluster_metadata import RegisterBrokerRecord
from tests.unit.broker.world import NODE, Connection, World


def ask(w: World, version: int = 5, **fields):
    fields.setdefault("transactional_id", None)
    return w.ask(
        handle_init_producer_id,
        InitProducerIdRequest(**fields),
        version,
        connection=fields.pop("connection", w.connection),
    )


def give(w: World, first: int, count: int = 1000) -> None:
    """The controller answers."""
    _, then = w.controller.submitted.pop(0)
    then(AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count))


def test_ids_come_in_blocks_from_the_controller():
    w = World()
    w.broker.image.replay(RegisterBrokerRecord(broker_id=NODE, broker_epoch=77))
    assert ask(w) is None
    ((command, _),) = w.controller.submitted
    assert isinstance(command, AllocateProducerIds)
    assert (command.request.broker_id, command.request.broker_epoch) == (NODE, 77)
    give(w, 5000)
    answer = w.connection.answer
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 5000, 0)
    assert [ask(w, version).producer_id for version in range(6)] == list(range(5001, 5007))
    assert not w.controller.submitted


def test_the_next_block_is_asked_for_in_time():
    w = World()
    ask(w)
    give(w, 0)
    w.connection.answers.clear()
    given = [ask(w).producer_id for _ in range(1000 - LEFT_MIN)]
    assert len(w.controller.submitted) == 1
    give(w, 9000)
    given += [ask(w).producer_id for _ in range(LEFT_MIN)]
    assert given == [*range(1, 1000), 9000]


def test_without_a_controller_producers_come_again():
    w = World()
    ask(w)
    _, then = w.controller.submitted.pop()
    then(ErrorCode.NOT_CONTROLLER)
    assert w.connection.answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    ask(w)
    give(w, 0)
    assert w.connection.answer.error_code == 0


def test_who_waits_gets_ids_in_order():
    w = World()
    connections = [Connection() for _ in range(3)]
    for connection in connections:
        request = InitProducerIdRequest(transactional_id=None)
        call = w.call(22, 5, connection=connection)
        assert handle_init_producer_id(w.broker, call, request) is None
    assert len(w.controller.submitted) == 1
    give(w, 40)
    assert [connection.answer.producer_id for connection in connections] == [40, 41, 42]


def test_two_phase_commit_needs_to_be_enabled():
    w = World()
    for asked in ({"enable2_pc": True}, {"keep_prepared_txn": True}):
        refused = ask(w, 6, transactional_id="t", transaction_timeout_ms=1000, **asked)
        assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_what_is_refused():
    w = World()
    assert ask(w, producer_id=5).error_code == ErrorCode.INVALID_REQUEST
    assert ask(w, transactional_id="").error_code == ErrorCode.INVALID_REQUEST
    long = ask(w, transactional_id="t", transaction_timeout_ms=1 << 30)
    assert long.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    missing = ask(w, transactional_id="t", transaction_timeout_ms=1000)
    assert missing.error_code == ErrorCode.NOT_COORDINATOR
    assert (missing.producer_id, missing.producer_epoch) == (-1, -1)
