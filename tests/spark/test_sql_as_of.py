"""AS OF: both engines answer the same, and refuse the same in the same words."""

import time
from datetime import UTC, datetime
from itertools import chain

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.pipelines import PipelineError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.local.questions import LocalQuestions
from moldau.pipelines.sql.ports import Engine
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.spark.engine import SparkEngine
from moldau.testing.broker import Broker
from tests.spark.sql_service import select_of, snapshot_of

DAY_MS = 86_400_000
DECLARED = """
CREATE TABLE compacted (id STRING PRIMARY KEY, v INT) WITH (topic='as-of-compacted');
CREATE STREAM raw (id STRING KEY, v INT) WITH (topic='as-of-compacted');
CREATE TABLE cut (id STRING PRIMARY KEY, v INT) WITH (topic='as-of-cut');
"""


@pytest.fixture(scope="module")
def engines(broker: Broker, spark: object) -> list[Engine]:
    servers = broker.bootstrap_servers
    with Admin(servers) as admin, Producer(servers) as producer:
        admin.create_topic(
            "as-of-compacted",
            2,
            configs={"cleanup.policy": "compact", "min.compaction.lag.ms": DAY_MS},
        )
        # Its records are old: retention would take them at its next look.
        admin.create_topic("as-of-cut", 1, configs={"retention.ms": "-1"})
        now_ms = int(time.time() * 1000)
        records = ((b"z", 1_000), (b"a", 2_000), (b"a", 3_000), (b"a", now_ms))
        for offset, (key, at_ms) in enumerate(records):
            data = b'{"v": %d}' % offset
            for topic in ("as-of-compacted", "as-of-cut"):
                producer.send(topic, data, key, partition=0, timestamp_ms=at_ms).result()
        producer.send("as-of-compacted", b'{"v": 9}', b"b", partition=1, timestamp_ms=1_000)
        producer.flush()
        admin.delete_records({TopicPartition("as-of-cut", 0): 2})
    return [LocalQuestions({"bootstrap.servers": servers}), SparkEngine("shop", servers)]


def ask(engine: Engine, text: str) -> list[tuple[object, ...]]:
    result = engine.select(select_of(text), snapshot_of(DECLARED), Session(), Asker())
    return sorted(chain.from_iterable(result.batches), key=str)


def with_times(text: str) -> str:
    """Put times for words: names of tests must be the same in all processes."""
    for words, ms in (("{half a day ago}", DAY_MS // 2), ("{two days ago}", 2 * DAY_MS)):
        at = datetime.fromtimestamp(time.time() - ms / 1000, UTC).replace(tzinfo=None)
        text = text.replace(words, at.isoformat())
    return text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("compacted TIMESTAMP AS OF '{half a day ago}'", [("a", 2), ("b", 9), ("z", 0)]),
        ('compacted VERSION AS OF \'{"0":3,"1":1}\'', [("a", 2), ("b", 9), ("z", 0)]),
        # What is not named is not there yet, however old it is by now.
        ("compacted VERSION AS OF '{\"0\":4}'", [("a", 3), ("z", 0)]),
        # A stream is what is there: nobody has asked for the latest of a key.
        ("raw VERSION AS OF '{\"0\":1}'", [("z", 0)]),
        ("raw TIMESTAMP AS OF '1970-01-01 00:00:02'", [("b", 9), ("z", 0)]),
        ("raw TIMESTAMP AS OF '1969-12-31 23:59:59.999'", []),
        ("cut VERSION AS OF '{\"0\":3}'", [("a", 2)]),
        ("cut VERSION AS OF '{\"0\":0}'", []),
    ],
)
def test_what_was(engines: list[Engine], text: str, expected: object) -> None:
    question = f"SELECT id, v FROM {with_times(text)}"
    for engine in engines:
        assert ask(engine, question) == expected, engine.name


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("compacted TIMESTAMP AS OF '{two days ago}'", r"min\.compaction\.lag\.ms=86400000: "),
        ('compacted VERSION AS OF \'{"0":2,"1":1}\'', r"min\.compaction\.lag\.ms=86400000: "),
        ("cut VERSION AS OF '{\"0\":1}'", r"begins at offset 2, .*\(retention\.ms, "),
        ("cut TIMESTAMP AS OF '1970-01-01 00:00:01.5'", r"begins at offset 2, .*\(retention\.ms, "),
        ("cut VERSION AS OF '{\"0\":99}'", "offset 99: partition as-of-cut-0 ends at 4"),
        ("cut VERSION AS OF '{\"7\":1}'", "topic as-of-cut has 1 partitions, and none 7"),
    ],
)
def test_what_nobody_knows(engines: list[Engine], text: str, error: str) -> None:
    question, said = f"SELECT id, v FROM {with_times(text)}", set()
    for engine in engines:
        with pytest.raises(PipelineError, match=error) as raised:
            ask(engine, question)
        said.add(str(raised.value))
    assert len(said) == 1
