"""Spark's own Kafka connector, a jar, at our broker: source and sink."""

from pathlib import Path
from typing import Any

from moldau import Producer, Record
from moldau.testing.broker import Broker
from tests.spark.own_process import run_program
from tests.spark.reading import read
from tools.peers import spark_connector


def fill(servers: str) -> None:
    """Write plain records, and transactions of which one is aborted and one is open."""
    with Producer(servers) as producer:
        for number in range(300):
            producer.send(
                "read",
                f"value-{number}".encode(),
                key=f"key-{number % 7}".encode() if number % 5 else None,
                headers=[("number", b"%d" % number)] if number % 2 else [],
            )
    with Producer(servers, transactional_id="jar") as producer:
        producer.init_transactions()
        for word in ("committed", "aborted", "again"):
            producer.begin_transaction()
            for number in range(20):
                producer.send("transactions", f"{word}-{number}".encode())
            if word == "aborted":
                producer.abort_transaction()
            else:
                producer.commit_transaction()


def columns_of(records: list[Record]) -> list[list[object]]:
    """Return records as the program prints its rows."""
    ordered = sorted(records, key=lambda record: (record.partition, record.offset))
    return [
        [
            record.partition,
            record.offset,
            record.key and record.key.decode(),
            record.value and record.value.decode(),
            record.timestamp_ms,
            [f"{name}={(value or b'').decode()}" for name, value in record.headers] or None,
        ]
        for record in ordered
    ]


def contents(records: list[Record]) -> list[tuple[object, ...]]:
    """Return what does not change when records are copied, in an order of its own."""
    return sorted((str(record.key), str(record.value), str(record.headers)) for record in records)


def test_it_reads_and_writes(broker: Broker, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    for topic in ("read", "transactions", "written", "streamed", "moving", "moved"):
        broker.create_topic(topic, partitions=3)
    fill(servers)
    found: Any = run_program("tests.spark.jar_queries", spark_connector(), servers, str(tmp_path))
    # A query goes on with the other connector, and back again.
    assert sorted(map(int, found.pop("moved"))) == list(range(30))
    source = read(servers, "read")
    assert len(source) == 300
    committed = columns_of(read(servers, "transactions"))
    assert len(committed) == 40
    rows = columns_of(source)
    assert found == {"batch": rows, "stream": rows, "transactions": committed}
    for topic in ("written", "streamed"):
        assert contents(read(servers, topic)) == contents(source)
