"""What Produce and Fetch count for each topic."""

from moldau.broker.handlers import fetch as fetch_module
from moldau.broker.handlers.fetch import handle_fetch
from moldau.broker.ports import SendablePieces
from moldau.kernel.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.unit.broker.world import TOPIC, World
from tests.unit.log.logs import batch_of


def counted(w: World, **others: int) -> None:
    """Check that nothing else was counted since the last time."""
    traffic = w.replicas.traffic[TOPIC]
    names = [name for name in dir(traffic) if not name.startswith("_") and name != "partitions"]
    fields = {name: getattr(traffic, name) for name in names}
    assert {name: value for name, value in fields.items() if value} == others
    for name in fields:
        setattr(traffic, name, 0)


def fetch(w: World, offset: int = 0, index: int = 0) -> None:
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=TOPIC, partitions=[wanted])]
    assert w.ask(handle_fetch, FetchRequest(max_bytes=1 << 20, topics=topics), 12)


def test_what_comes_in_and_goes_out():
    w = World()
    w.create(partitions=2)
    data = batch_of(3)
    w.write(data)
    w.write(data, 1)
    counted(w, produce_requests=2, messages_in=6, bytes_in=2 * len(data))
    fetch(w)
    counted(w, fetch_requests=1, bytes_out=len(data))


def test_only_what_nobody_expects_is_a_failure():
    w = World()
    w.create(config=LogConfig(max_message_bytes=200))
    large = batch_of(1, value=bytes(200))
    w.write(large)
    counted(w, produce_requests=1, bytes_rejected=len(large))
    damaged = bytearray(batch_of())
    damaged[-1] ^= 1
    w.write(damaged)
    counted(w, produce_requests=1)
    w.write(batch_of(), acks=7)
    counted(w)
    w.write(batch_of(producer_id=7, producer_epoch=0, base_sequence=-5))
    counted(w, produce_requests=1, produce_failed=1)
    w.write(batch_of(), 9)
    counted(w)
    fetch(w, 7)
    counted(w, fetch_requests=1)


def test_records_that_cannot_be_read(monkeypatch):
    w = World()
    w.create()
    w.write(batch_of())
    monkeypatch.setattr(fetch_module, "answer_plain", lambda *_: None)
    monkeypatch.setattr(w.logs, "ready", lambda _, then: then(SendablePieces([None], None, 0)))
    counted(w, produce_requests=1, messages_in=1, bytes_in=len(batch_of()))
    fetch(w)
    counted(w, fetch_requests=1, fetch_failed=1)


def test_the_counts_go_with_the_last_partition():
    w = World()
    w.create(partitions=2)
    w.replicas.remove(TopicPartition(TOPIC, 0))
    assert list(w.replicas.traffic) == [TOPIC]
    w.replicas.remove(TopicPartition(TOPIC, 1))
    assert not w.replicas.traffic
