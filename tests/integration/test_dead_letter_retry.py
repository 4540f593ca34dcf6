"""Dead letters go back to where they come from, once."""

from collections import Counter
from collections.abc import Iterator

import pytest

import moldau
from moldau.client.errors import ClientError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.dead_letter_headers import OFFSET, PARTITION, REASON, TOPIC
from moldau.pipelines.streams.dead_letter_retry import find_origin, retry_dead_letters
from moldau.testing.broker import Broker

LETTERS = "shop.dead-letters"


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker() as broker:
        broker.create_topic(LETTERS, partitions=2)
        for name in ("orders", "users"):
            broker.create_topic(name)
        yield broker.bootstrap_servers


def write(servers: str, origin: str, value: bytes | None, partition: int = 0) -> None:
    added = [(TOPIC, origin.encode()), (PARTITION, b"0"), (OFFSET, b"7"), (REASON, b"no JSON")]
    with moldau.Producer(servers) as producer:
        headers = [("trace", b"1"), *added]
        producer.send(LETTERS, value, b"k", partition=partition, headers=headers)


def read(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None, object]]:
    with moldau.Consumer(
        servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([(topic, 0)])
        end = consumer.end_offsets([(topic, 0)])[moldau.TopicPartition(topic, 0)]
        found = []
        while consumer.position((topic, 0)) < end:
            found += consumer.poll(timeout_ms=1000)
    return [(record.key, record.value, list(record.headers)) for record in found]


def test_each_goes_back_once_as_it_was(servers: str) -> None:
    write(servers, "orders", b"{")
    write(servers, "users", None)
    write(servers, "orders", b"[", partition=1)
    with moldau.Producer(servers) as producer:
        producer.send(LETTERS, b"somebody wrote this here", partition=0)
    assert retry_dead_letters("shop", servers, topic="orders") == Counter(orders=2)
    assert retry_dead_letters("shop", servers, topic="orders") == Counter()
    assert retry_dead_letters("shop", servers) == Counter(users=1)
    write(servers, "orders", b"(")
    assert retry_dead_letters("shop", servers) == Counter(orders=1)
    trace = [("trace", b"1")]
    assert sorted(read(servers, "orders"), key=str) == sorted(
        [(b"k", b"{", trace), (b"k", b"[", trace), (b"k", b"(", trace)], key=str
    )
    assert read(servers, "users") == [(b"k", None, trace)]


def test_who_is_interrupted_goes_on_without_a_letter_twice(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(servers, "orders", b"{")

    def fail(*_: object) -> None:
        raise ClientError("the cable was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(moldau.Producer, "send_offsets", fail)
        with pytest.raises(ClientError, match="the cable was pulled"):
            retry_dead_letters("shop", servers)
    assert read(servers, "orders") == []
    assert retry_dead_letters("shop", servers) == Counter(orders=1)
    assert len(read(servers, "orders")) == 1


def test_an_app_without_dead_letters(servers: str) -> None:
    with pytest.raises(PipelineError, match=r"there is no topic shp\.dead-letters: app shp has no"):
        retry_dead_letters("shp", servers)


def test_records_that_are_no_letters() -> None:
    added = [(TOPIC, b"orders"), (PARTITION, b"0"), (OFFSET, b"7"), (REASON, b"no JSON")]
    assert find_origin([]) is None
    assert find_origin(added[1:]) is None
    assert find_origin([*added, ("trace", b"1")]) is None
    assert find_origin(added) == ("orders", [])
    # Whatever headers the record had, they stay.
    assert find_origin([*added, *added]) == ("orders", added)
