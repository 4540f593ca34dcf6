"""Small questions, from a broker's topics to rows: no Spark is there."""

import json
import struct
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import moldau
from moldau.pipelines.decoding.batches import DecodeError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.asking import Asker, CancelledError
from moldau.pipelines.sql.language.queries import AsOfOffsets, AsOfTime
from moldau.pipelines.sql.local.answering import LocalEngine
from moldau.pipelines.sql.local.inference import SAMPLE_RECORDS
from moldau.pipelines.sql.local.records import QuestionLimits
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.sql.session import Session
from moldau.testing.broker import Broker

USERS = Relation(
    "users",
    RelationKind.TABLE,
    "users",
    (Column("user", "string", is_key=True), Column("name", "string"), Column("city", "string")),
)
ORDERS = Relation(
    "orders",
    RelationKind.STREAM,
    "orders",
    (Column("id", "bigint", is_key=True), Column("user", "string"), Column("amount", "double")),
)
CATALOG = {"users": USERS, "orders": ORDERS}
DAY_MS = 86_400_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def engine(broker: Broker) -> LocalEngine:
    return LocalEngine({"bootstrap.servers": broker.bootstrap_servers})


def send(
    broker: Broker,
    topic: str,
    *records: tuple[bytes | None, object],
    partition: int = 0,
    timestamp_ms: int | None = None,
) -> None:
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for key, value in records:
            data = (
                value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            )
            producer.send(topic, data, key, partition=partition, timestamp_ms=timestamp_ms)


def fill_users(broker: Broker, **configs: object) -> None:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    broker.create_topic("users", partitions=2, configs=settings)
    # A compacted topic takes no record without a key.
    others = [] if "cleanup_policy" in configs else [(None, {"name": "Nobody"})]
    send(
        broker, "users",
        (b"ann", {"name": "Ann", "city": "Brno"}), (b"bob", {"name": "Bob", "city": "Brno"}),
        (b"cyd", {"name": "Cyd"}), (b"ann", {"name": "Ann", "city": "Praha"}), (b"bob", None),
        *others, timestamp_ms=1_000,
    )  # fmt: skip


def rows(engine: LocalEngine, query: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = engine.answer(query, CATALOG).rows.to_pylist()
    return found


class Watching(Asker):
    """Hears everything, and may go some time after all is read."""

    def __init__(self, going_seconds: float | None = None) -> None:
        super().__init__()
        self.told: list[tuple[int, int | None]] = []
        self._going = going_seconds
        self._timers: list[threading.Timer] = []

    def progress(self, done: int, total: int | None = None) -> None:
        self.told.append((done, total))
        if self._going is not None and done == total:
            self._timers.append(threading.Timer(self._going, self.cancel))
            self._timers[-1].start()

    def stop(self) -> None:
        for each in self._timers:
            each.cancel()
            each.join()


def at(ms: int) -> AsOfTime:
    return AsOfTime(datetime.fromtimestamp(ms / 1000, UTC))


def test_a_table_has_the_latest_row_of_each_key(broker: Broker, engine: LocalEngine) -> None:
    fill_users(broker)
    assert rows(engine, "SELECT * FROM users ORDER BY user") == [
        {"user": "ann", "name": "Ann", "city": "Praha"},
        {"user": "cyd", "name": "Cyd", "city": None},
    ]
    # Partitions have grown: of a key in two, the later record counts.
    send(broker, "users", (b"ann", {"name": "Anna"}), partition=1, timestamp_ms=2_000)
    send(broker, "users", (b"cyd", {"name": "Old"}), partition=1, timestamp_ms=500)
    found = rows(engine, "SELECT name FROM users ORDER BY user")
    assert [each["name"] for each in found] == ["Anna", "Cyd"]
    assert rows(engine, "SELECT count(*) AS c FROM users") == [{"c": 2}]


def test_a_stream_has_every_record_with_its_place(broker: Broker, engine: LocalEngine) -> None:
    broker.create_topic("orders")
    keys = [struct.pack(">q", number) for number in (7, -1)]
    with moldau.Producer(broker.bootstrap_servers) as producer:
        producer.send("orders", b'{"user": "ann", "amount": 1}', keys[0], timestamp_ms=1_500)
        producer.send(
            "orders", b'{"amount": 2.5}', keys[1], headers=[("a", b"1")], timestamp_ms=2_500
        )
        producer.send("orders", None, None, timestamp_ms=3_500)
    answer = engine.answer(
        "SELECT *, _topic, _partition, _offset, unix_millis(_timestamp) AS at, _headers "
        "FROM orders",
        CATALOG,
    )
    assert answer.rows.schema.types[:3] == [pa.int64(), pa.string(), pa.float64()]
    place = {"_topic": "orders", "_partition": 0}
    assert answer.rows.to_pylist() == [
        {"id": 7, "user": "ann", "amount": 1.0, **place, "_offset": 0, "at": 1_500,
         "_headers": None},
        {"id": -1, "user": None, "amount": 2.5, **place, "_offset": 1, "at": 2_500,
         "_headers": [{"key": "a", "value": b"1"}]},
        {"id": None, "user": None, "amount": None, **place, "_offset": 2, "at": 3_500,
         "_headers": None},
    ]  # fmt: skip
    assert answer.note == "answered here, from 3 records"


def test_joins_of_streams_and_tables(broker: Broker, engine: LocalEngine) -> None:
    fill_users(broker)
    send(broker, "orders", *((None, {"user": who, "amount": 5}) for who in ("ann", "bob", "ann")))
    query = """SELECT u.city, count(*) AS orders, sum(o.amount) AS total
        FROM orders o LEFT JOIN users u ON o.user = u.user GROUP BY u.city ORDER BY u.city"""
    assert rows(engine, query) == [
        {"city": None, "orders": 1, "total": 5.0},
        {"city": "Praha", "orders": 2, "total": 10.0},
    ]


def test_keys_of_several_columns_are_json(broker: Broker, engine: LocalEngine) -> None:
    columns = (
        Column("a", "string", is_key=True),
        Column("b", "int", is_key=True),
        Column("v", "decimal(5,2)"),
    )
    table = Relation("pairs", RelationKind.TABLE, "pairs", columns)
    send(broker, "pairs", (b'{"a":"x","b":1}', {"v": 1.5}), (b'{"a":"x","b":2}', {"v": 2}),
         (b'{"b":1,"a":"x"}', {"v": 3.125}))  # fmt: skip
    found = engine.answer(
        "SELECT a, b, CAST(v AS string) AS v FROM pairs ORDER BY b", {"pairs": table}
    )
    assert found.rows.to_pylist() == [
        {"a": "x", "b": 1, "v": "3.13"},
        {"a": "x", "b": 2, "v": "2.00"},
    ]


@pytest.mark.parametrize(
    ("form", "its_type", "data", "expected"),
    [
        ("string", "string", "ě".encode(), "ě"),
        ("int", "int", struct.pack(">i", -5), -5),
        ("long", "bigint", struct.pack(">q", 1 << 40), 1 << 40),
        ("double", "double", struct.pack(">d", 2.5), 2.5),
        ("raw", "binary", b"\xff", b"\xff"),
    ],
)
def test_plain_values(
    broker: Broker, engine: LocalEngine, form: str, its_type: str, data: bytes, expected: object
) -> None:
    send(broker, "plain", (None, data), (None, None))
    plain = Relation("p", RelationKind.STREAM, "plain", (Column("v", its_type),), form)
    found = engine.answer("SELECT v FROM p", {"p": plain}).rows.to_pylist()
    assert found == [{"v": expected}, {"v": None}]


def test_a_record_that_does_not_decode_is_named(broker: Broker, engine: LocalEngine) -> None:
    send(broker, "orders", (None, {"amount": 1}), (None, {"amount": "much"}), (None, b"{"))
    with pytest.raises(DecodeError, match="topic orders, partition 0, offset 1 does not decode"):
        engine.answer("SELECT amount FROM orders", CATALOG)
    send(broker, "numbers", (b"abc", b"{}"))
    numbers = Relation("n", RelationKind.STREAM, "numbers", (Column("k", "int", is_key=True),))
    with pytest.raises(DecodeError, match="offset 0 does not decode: key: 3 bytes, int has 4"):
        engine.answer("SELECT k FROM n", {"n": numbers})


def test_a_topic_that_nobody_has_declared(broker: Broker, engine: LocalEngine) -> None:
    send(broker, "clicks", (b"a", {"page": "/", "ms": 5, "who": {"id": 1}, "tags": ["x"]}),
         (b"b", {"page": "/b", "ms": 2.5}))  # fmt: skip
    answer = engine.answer("SELECT * FROM clicks ORDER BY _key", {})
    assert answer.rows.to_pylist() == [
        {"_key": "a", "page": "/", "ms": 5.0, "who": {"id": 1}, "tags": ["x"]},
        {"_key": "b", "page": "/b", "ms": 2.5, "who": None, "tags": None},
    ]
    guessed = "the columns of topic clicks are guessed from its first records, declare it"
    for wrong in ("SELECT pge FROM clicks", "SELECT who.nme FROM clicks",
                  "SELECT pge FROM (SELECT * FROM clicks)"):  # fmt: skip
        with pytest.raises(PipelineError, match=rf"there is no (column|field) .*; {guessed}"):
            engine.answer(wrong, {})
    with pytest.raises(PipelineError, match=r"there is no column pge; there are user, name, city$"):
        engine.answer("SELECT pge FROM users", CATALOG)
    send(broker, "words", (None, b"one"), (b"\xff", b"two"))
    found = engine.answer("SELECT value, _key FROM words ORDER BY _offset", {}).rows.to_pylist()
    assert found == [{"value": "one", "_key": None}, {"value": "two", "_key": b"\xff"}]
    broker.create_topic("with-dash")
    assert engine.answer("SELECT count(*) AS c FROM `with-dash`", {}).rows.to_pylist() == [{"c": 0}]
    with pytest.raises(PipelineError, match="no stream, table or topic nothing"):
        engine.answer("SELECT * FROM nothing", {})


def test_a_record_that_does_not_fit_what_was_guessed(broker: Broker, engine: LocalEngine) -> None:
    broker.create_topic("later")
    send(broker, "later", *((None, {"n": 1}) for _ in range(SAMPLE_RECORDS)), (None, {"n": "x"}))
    with pytest.raises(DecodeError, match=r"offset 1000 does not decode.*; the columns of topic"):
        engine.answer("SELECT n FROM later", {})
    session = Session.of({"undeclared.on_error": "skip"})
    found = engine.answer("SELECT count(*) AS n FROM later", {}, session=session)
    assert found.rows.to_pylist() == [{"n": SAMPLE_RECORDS}]
    note = "1 record of topic later does not decode, and is left out (on_error)"
    assert found.left_out == (note,)


def test_only_what_is_committed_is_read(broker: Broker, engine: LocalEngine) -> None:
    broker.create_topic("orders")
    with moldau.Producer(broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("orders", b'{"amount": 1}')
        producer.begin_transaction()
        producer.send("orders", b'{"amount": 10}')
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("orders", b'{"amount": 100}')
        producer.flush()
        assert rows(engine, "SELECT sum(amount) AS s FROM orders") == [{"s": 1.0}]
        producer.commit_transaction()
    assert rows(engine, "SELECT sum(amount) AS s FROM orders") == [{"s": 101.0}]


def test_as_of_a_time_and_as_of_offsets(broker: Broker, engine: LocalEngine) -> None:
    fill_users(broker)
    send(broker, "users", (b"ann", {"name": "Eve"}), timestamp_ms=DAY_MS)
    name = "SELECT name FROM users %s WHERE user = 'ann'"
    assert rows(engine, name % "") == [{"name": "Eve"}]
    assert rows(engine, name % "TIMESTAMP AS OF '1970-01-02 00:00:00'") == [{"name": "Ann"}]
    assert rows(engine, name % "TIMESTAMP AS OF '1970-01-02 00:00:00.001'") == [{"name": "Eve"}]
    city = """SELECT city FROM users VERSION AS OF '{"0":2,"1":0}' WHERE user = 'ann'"""
    assert rows(engine, city) == [{"city": "Brno"}]
    given = engine.answer("SELECT count(*) AS c FROM users", CATALOG, {"users": at(1_000)})
    assert given.rows.to_pylist() == [{"c": 0}]
    given = engine.answer(
        "SELECT count(*) AS c FROM users", CATALOG, {"users": AsOfOffsets(((0, 3),))}
    )
    assert given.rows.to_pylist() == [{"c": 3}]
    both = """SELECT now.name, old.name AS was FROM users AS now JOIN
        users VERSION AS OF '{"0":1}' AS old ON now.user = old.user"""
    assert rows(engine, both) == [{"name": "Eve", "was": "Ann"}]
    with pytest.raises(
        PipelineError, match=r"VERSION AS OF offset 99: partition users-0 ends at 7"
    ):
        rows(engine, """SELECT * FROM users VERSION AS OF '{"0":99}'""")
    with pytest.raises(PipelineError, match="topic users has 2 partitions, and none 5"):
        rows(engine, """SELECT * FROM users VERSION AS OF '{"5":1}'""")


def test_as_of_where_compaction_may_have_passed(broker: Broker, engine: LocalEngine) -> None:
    fill_users(broker, cleanup_policy="compact", min_compaction_lag_ms=DAY_MS)
    now_ms = int(time.time() * 1000)
    send(broker, "users", (b"ann", {"name": "Eve"}), timestamp_ms=now_ms)
    query = "SELECT name FROM users WHERE user = 'ann'"

    def name_as_of(when: AsOfTime | AsOfOffsets) -> object:
        return engine.answer(query, CATALOG, {"users": when}).rows.to_pylist()

    assert name_as_of(at(now_ms - DAY_MS // 2)) == [{"name": "Ann"}]
    assert name_as_of(AsOfOffsets(((0, 5),))) == [{"name": "Ann"}]
    for when in (at(now_ms - 2 * DAY_MS), AsOfOffsets(((0, 3),))):
        with pytest.raises(
            PipelineError, match=r"min\.compaction\.lag\.ms=86400000: compaction may"
        ):
            name_as_of(when)
    # What is not named is not there yet, however old it is by now.
    send(broker, "users", (b"old", {"name": "Old"}), partition=1, timestamp_ms=1_000)
    assert name_as_of(AsOfOffsets(((0, 6),))) == [{"name": "Eve"}]
    # A stream is what is there; nobody has asked for the latest of a key.
    stream = Relation("users", RelationKind.STREAM, "users", USERS.columns)
    counted = engine.answer(
        "SELECT count(*) AS c FROM users", {"users": stream}, {"users": AsOfOffsets(((0, 3),))}
    )
    assert counted.rows.to_pylist() == [{"c": 3}]


def test_as_of_what_is_deleted(broker: Broker, engine: LocalEngine) -> None:
    fill_users(broker)
    with moldau.Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({moldau.TopicPartition("users", 0): 3})
    with pytest.raises(
        PipelineError, match=r"offset 2: partition users-0 begins at offset 3.*retention"
    ):
        rows(engine, """SELECT * FROM users VERSION AS OF '{"0":2}'""")
    with pytest.raises(PipelineError, match=r"users-0 begins at offset 3.*retention\.ms"):
        rows(engine, "SELECT * FROM users TIMESTAMP AS OF '1970-01-01 00:00:00.5'")


def test_what_is_large_goes_to_spark(broker: Broker) -> None:
    send(broker, "orders", *((None, {"amount": number}) for number in range(20)))
    config = {"bootstrap.servers": broker.bootstrap_servers}
    few = LocalEngine(config, QuestionLimits(records_max=10))
    with pytest.raises(GoesToSpark, match="large: 20 records up to and with topic orders"):
        few.answer("SELECT sum(amount) FROM orders", CATALOG)
    small = LocalEngine(config, QuestionLimits(bytes_max=100))
    with pytest.raises(GoesToSpark, match="large: more than"):
        small.answer("SELECT sum(amount) FROM orders", CATALOG)


def test_who_answers_is_explained_and_progress_is_told(broker: Broker, engine: LocalEngine) -> None:
    send(broker, "orders", *((None, {"amount": number}) for number in range(20)))
    explained = engine.explain("SELECT sum(amount) FROM orders", CATALOG)
    assert explained.is_local
    assert explained.reason == "small and plain: 20 records"
    explained = engine.explain("SELECT percentile_approx(amount, 0.5) FROM orders", CATALOG)
    assert (explained.is_local, explained.reason) == (False, "function percentile_approx")
    asker = Watching()
    engine.answer("SELECT sum(amount) FROM orders", CATALOG, asker=asker)
    assert asker.told[-1] == (20, 20)


def test_whoever_goes_ends_what_is_read_and_what_is_computed(
    broker: Broker, engine: LocalEngine
) -> None:
    send(broker, "orders", *((None, {"amount": number}) for number in range(2_000)))
    endless = (
        "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e "
        "WHERE (a.amount + b.amount + c.amount + d.amount + e.amount) % 7 = 3"
    )
    # Before it is read, when it is read, and while it is computed.
    for seconds in (None, 0, 0.5):
        asker = Watching(seconds)
        if seconds is None:
            asker.cancel()
        with pytest.raises(CancelledError):
            engine.answer(endless, CATALOG, asker=asker)
        asker.stop()


@pytest.mark.parametrize(
    "expression",
    ["1 / (amount - 3)", "CAST(user AS int)", "CAST(amount AS int) + 2147483647", "upper(user)"],
)
def test_what_fails_at_run_time_goes_to_spark(
    broker: Broker, engine: LocalEngine, expression: str
) -> None:
    send(broker, "orders", *((None, {"user": "ß", "amount": number}) for number in range(5)))
    with pytest.raises(GoesToSpark, match="it does not work out here"):
        rows(engine, f"SELECT {expression} FROM orders")
