"""An answer that fails when it is given later: it is noted, and whoever else waits has theirs."""

from collections.abc import Callable

import pytest

from moldau.broker.handlers.delete_records import handle_delete_records
from moldau.broker.handlers.init_producer_id import handle_init_producer_id
from moldau.kernel.ids import TopicPartition
from moldau.log.config import Durability
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.unit.broker.world import TOPIC, Connection, World
from tests.unit.log.logs import batch_of

PARTITION = TopicPartition(TOPIC, 0)

Ask = Callable[[World, Connection], None]
Happen = Callable[[World], None]


class Broken(Connection):
    """Cannot take an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception] = []

    def answered(self, *_: object) -> None:
        raise RuntimeError("oops")

    def failed(self, _call, error) -> None:
        self.failures.append(error)


def produce(w: World, connection: Connection) -> None:
    w.produce_later(connection, batch_of())


def init_producer_id(w: World, connection: Connection) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    handle_init_producer_id(w.broker, w.call(22, 5, connection=connection), request)


def delete_records(w: World, connection: Connection) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=0)
    topics = [DeleteRecordsTopic(name=TOPIC, partitions=[partition])]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=1000)
    handle_delete_records(w.broker, w.call(21, 2, connection=connection), request)


def give_producer_ids(w: World) -> None:
    _, then = w.controller.submitted.pop(0)
    then(AllocateProducerIdsResponse(producer_id_start=0, producer_id_len=1000))


def wait(w: World) -> None:
    w.environment.run(2.0)


@pytest.mark.parametrize(
    ("ask", "happen"),
    [
        pytest.param(produce, World.sync, id="produce"),
        pytest.param(produce, wait, id="produce, too late"),
        pytest.param(produce, lambda w: w.replicas.offline(PARTITION), id="produce, lost"),
        pytest.param(init_producer_id, give_producer_ids, id="init producer id"),
        pytest.param(delete_records, lambda w: w.logs.catch_up(), id="delete records"),
    ],
)
def test_others_are_answered(ask: Ask, happen: Happen) -> None:
    w = World(durability=Durability.FSYNC)
    w.create()
    broken, works = Broken(), Connection()
    for connection in (broken, works):
        ask(w, connection)
    w.flush()
    happen(w)
    assert [str(error) for error in broken.failures] == ["oops"]
    assert len(works.answers) == 1
