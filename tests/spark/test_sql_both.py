"""What both engines answer alike, beyond expressions: times, records' own columns, bad records."""

from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from moldau import Producer
from moldau.pipelines import PipelineError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.language.spark_functions import SPARK_FUNCTIONS
from moldau.pipelines.sql.local.questions import LocalQuestions
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.spark.engine import SparkEngine
from moldau.testing.broker import Broker
from tests.spark.sql_service import create, select_of, send, snapshot_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1767268800_000
DECLARED = """
CREATE STREAM clicks (id STRING KEY, page STRING, at BIGINT)
  WITH (topic='b-clicks', timestamp='AT', watermark='1 second');
CREATE STREAM micros (id STRING KEY, at BIGINT)
  WITH (topic='b-micros', event_time='at', event_time_unit='us');
CREATE STREAM seconds (id STRING KEY, at BIGINT)
  WITH (topic='b-clicks', event_time='at', event_time_unit='s');
CREATE STREAM longs (id STRING KEY, at BIGINT)
  WITH (topic='b-longs', format='long', event_time='at', event_time_unit='s');
CREATE TABLE latest (id STRING PRIMARY KEY, page STRING, at BIGINT)
  WITH (topic='b-clicks', event_time='at');
CREATE STREAM pages (id STRING KEY, page STRING) WITH (topic='b-pages');
CREATE TABLE titles (id STRING PRIMARY KEY, page STRING) WITH (topic='b-pages');
CREATE STREAM own (id STRING KEY, _offset STRING, n INT) WITH (topic='b-own');
CREATE STREAM strict (id STRING KEY, n INT, page STRING) WITH (topic='b-bad');
CREATE STREAM lenient (id STRING KEY, n INT, page STRING) WITH (topic='b-bad', on_error='skip');
CREATE TABLE counts (id STRING PRIMARY KEY, n INT) WITH (topic='b-bad', on_error='dead-letter');
CREATE STREAM ints (n INT) WITH (topic='b-bad-ints', format='int', on_error='skip');
CREATE STREAM nested (id STRING KEY, place STRUCT<city: STRING>) WITH (topic='b-own');
CREATE STREAM plain (id STRING KEY, page STRING, at TIMESTAMP) WITH (topic='b-clicks');
"""


class Both:
    """Asks both engines."""

    def __init__(self, servers: str) -> None:
        self.local = LocalQuestions({"bootstrap.servers": servers})
        self.spark = SparkEngine("both", servers, infer=self.local.infer)
        self.snapshot = snapshot_of(DECLARED)

    def ask(
        self, engine: Any, text: str, session: Session
    ) -> tuple[list[Any], list[Any], list[str]]:
        result = engine.select(select_of(text), self.snapshot, session, Asker())
        found = list(chain.from_iterable(result.batches))
        return [(each.name, each.type) for each in result.columns], found, list(result.notes)

    def __call__(self, text: str, settings: dict[str, str] | None = None) -> list[Any]:
        """Return the rows, of which both have the same, by the same names, of the same types."""
        session = Session.of(settings or {})
        columns, rows, notes = self.ask(self.local, text, session)
        assert self.ask(self.spark, text, session) == (columns, rows, notes)
        return rows

    def refusals(self, text: str, settings: dict[str, str] | None = None) -> set[str]:
        """Return what both say: one text, if that is the same."""
        said = set()
        for engine in (self.local, self.spark):
            with pytest.raises(PipelineError) as caught:
                self.ask(engine, text, Session.of(settings or {}))
            said.add(str(caught.value))
        return said


@pytest.fixture(scope="module")
def both(broker: Broker, spark: object) -> Both:
    servers = broker.bootstrap_servers
    create(
        servers,
        "b-clicks",
        "b-micros",
        "b-longs",
        "b-guessed",
        "b-pages",
        "b-own",
        "b-bad",
        "b-bad-ints",
    )
    send(
        servers,
        "b-clicks",
        ("c1", {"page": "/", "at": NOON_MS}),
        ("c2", {"page": "/a", "at": NOON_MS + 60_000}),
        ("c1", {"page": "/b", "at": NOON_MS + 61_500}),
        ("c3", {"page": "/c"}),
    )
    send(servers, "b-micros", ("m1", {"at": NOON_MS * 1000 + 7}), ("m2", {"at": -1}))
    send(servers, "b-guessed", (None, {"at": NOON_MS * 1000 + 7, "day": "2026-01-01T12:00:00Z"}))
    send(servers, "b-own", ("k", {"_offset": "mine", "n": 7, "rowtime": 7}))
    send(
        servers, "b-bad", ("k1", {"n": 1, "page": "/"}), ("k1", {"n": "one"}), ("k2", {"n": 2}),
        ("k2", {"n": 2.5}), ("k3", {"page": "/c"}),
    )  # fmt: skip
    with Producer(servers) as producer:
        for data in (b"\0\0\0\1", b"x", b"\0\0\0\2"):
            producer.send("b-bad-ints", data).result()
        producer.send("b-pages", b'{"page": "/a"}', b"p1", headers=[("h", b"1")]).result()
        producer.send("b-pages", b'{"page": "/b"}', b"p2").result()
        producer.send("b-pages", b'{"page": "/a"}', b"p1").result()
        for second in (0, 60):
            data = (NOON_MS // 1000 + second).to_bytes(8, "big")
            producer.send("b-longs", data, b"l").result()
    return Both(servers)


def test_numbers_since_1970_are_times(both: Both) -> None:
    assert both(
        "SELECT id, at, rowtime FROM clicks WHERE at > '2026-01-01 12:00:30' ORDER BY at"
    ) == [
        ("c2", NOON + timedelta(seconds=60), NOON + timedelta(seconds=60)),
        ("c1", NOON + timedelta(seconds=61.5), NOON + timedelta(seconds=61.5)),
    ]
    counts = "SELECT {} AS minute, count(*) AS n FROM clicks {} ORDER BY minute"
    wanted = [(NOON, 1), (NOON + timedelta(minutes=1), 2)]
    assert both(counts.format("window.start", "GROUP BY window(at, '1 minute')")) == wanted
    assert both(
        "SELECT page, windowstart FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY page "
        "ORDER BY page LIMIT 2"
    ) == [("/", NOON), ("/a", NOON + timedelta(minutes=1))]
    assert both("SELECT id, at FROM micros ORDER BY id") == [
        ("m1", NOON + timedelta(microseconds=7)),
        ("m2", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ]
    assert both("SELECT at, rowtime FROM longs ORDER BY at") == [
        (NOON, NOON),
        (NOON + timedelta(minutes=1), NOON + timedelta(minutes=1)),
    ]
    assert both("SELECT id, page, at FROM latest ORDER BY id") == [
        ("c1", "/b", NOON + timedelta(seconds=61.5)),
        ("c2", "/a", NOON + timedelta(seconds=60)),
        ("c3", "/c", None),
    ]


def test_times_that_are_none_are_refused_by_field(both: Both) -> None:
    (said,) = both.refusals("SELECT id, at FROM seconds")
    assert said.startswith(
        "topic b-clicks, partition 0, offset 0 does not decode: value: field at is not between the "
        "years 1 and 9999 in s; event_time_unit says what it counts: s, ms, us or ns; "
    )
    (said,) = both.refusals("SELECT id, at FROM plain")
    assert said.startswith(
        "topic b-clicks, partition 0, offset 0 does not decode: value: field at is not between the "
        "years 1 and 9999; a number is read as seconds since 1970: declare milliseconds as BIGINT, "
        "with event_time_unit; "
    )


def test_topics_that_are_not_declared_have_times_by_setting(both: Both) -> None:
    settings = {"undeclared.event_time": "at"}
    text = "SELECT _key, at, rowtime FROM `b-clicks` WHERE at IS NOT NULL ORDER BY at LIMIT 1"
    assert both(text, settings) == [("c1", NOON, NOON)]
    assert both(text.replace(", rowtime", "")) == [("c1", NOON_MS)]
    micros = {**settings, "undeclared.event_time_unit": "us"}
    text = "SELECT at FROM `b-guessed`"
    assert both(text, micros) == [(NOON + timedelta(microseconds=7),)]
    times = {"undeclared.event_time": "DAY"}
    assert both("SELECT day, rowtime FROM `b-guessed`", times) == [(NOON, NOON)]
    (said,) = both.refusals(text, settings)
    assert "field at is not between the years 1 and 9999 in ms" in said


def test_records_have_columns_of_their_own_which_all_columns_are_not(both: Both) -> None:
    place = "_topic, _partition, _offset, _timestamp > '2026-01-01', _headers"
    assert both(f"SELECT id, {place} FROM pages ORDER BY _offset") == [
        ("p1", "b-pages", 0, 0, True, [{"key": "h", "value": b"1"}]),
        ("p2", "b-pages", 0, 1, True, None),
        ("p1", "b-pages", 0, 2, True, None),
    ]
    assert both("SELECT * FROM pages WHERE _OFFSET = 1") == [("p2", "/b")]
    # Two rows are one, if their records are not asked for.
    assert both("SELECT DISTINCT * FROM pages WHERE _offset >= 0 ORDER BY id") == [
        ("p1", "/a"),
        ("p2", "/b"),
    ]
    assert both("SELECT DISTINCT * FROM pages WHERE rowtime > '2026-01-01' ORDER BY id") == [
        ("p1", "/a"),
        ("p2", "/b"),
    ]
    assert both("SELECT *, _offset FROM pages p ORDER BY p._offset LIMIT 1") == [("p1", "/a", 0)]
    assert both("SELECT max(_offset), count(*) FROM pages") == [(2, 3)]
    assert both("SELECT _partition, count(*) AS n FROM pages GROUP BY _partition") == [(0, 3)]
    assert both("SELECT page FROM `b-pages` WHERE _offset < 2 AND _headers IS NULL") == [("/b",)]
    assert both("SELECT _headers[0].key AS k FROM pages WHERE _headers IS NOT NULL") == [("h",)]


def test_columns_of_records_in_joins_tables_and_subqueries(both: Both) -> None:
    assert both("SELECT id, _offset, _topic FROM titles ORDER BY id") == [
        ("p1", 2, "b-pages"),
        ("p2", 1, "b-pages"),
    ]
    assert both("SELECT max(rowtime) >= min(_timestamp) AS later FROM titles") == [(True,)]
    joined = "SELECT {} FROM pages p JOIN titles t ON p.id = t.id ORDER BY p._offset"
    assert both(joined.format("p.id, p._offset, t._offset")) == [
        ("p1", 0, 2),
        ("p2", 1, 1),
        ("p1", 2, 2),
    ]
    assert both(joined.format("*"))[0] == ("p1", "/a", "p1", "/a")
    assert both(
        "SELECT n FROM (SELECT *, _offset AS n FROM pages WHERE _offset > 0) ORDER BY n"
    ) == [
        (1,),
        (2,),
    ]
    for text in (
        "SELECT _offset FROM (SELECT * FROM pages)",
        "SELECT _offset FROM pages p, titles t",
    ):
        both.refusals(text)


def test_a_column_that_is_called_so_stays_what_it_is(both: Both) -> None:
    assert both("SELECT _offset, _partition FROM own") == [("mine", 0)]
    assert both("SELECT * FROM own WHERE _offset = 'mine'") == [("k", "mine", 7)]
    assert both("SELECT rowtime FROM `b-own`") == [(7,)]


def test_columns_of_records_are_pushed(both: Both) -> None:
    session = Session.of({"auto.offset.reset": "earliest"})
    text = "SELECT *, _offset, _headers FROM pages WHERE _offset > 0 EMIT CHANGES LIMIT 2"
    columns, rows, _ = both.ask(both.local, text, session)
    assert rows == [("p2", "/b", 1, None), ("p1", "/a", 2, None)]
    assert both.ask(both.spark, text, session)[:2] == (columns, rows)
    text = (
        "SELECT p._offset, t._offset FROM pages p JOIN titles t ON p.id = t.id EMIT CHANGES LIMIT 3"
    )
    assert sorted(both.ask(both.spark, text, session)[1]) == [(0, 2), (1, 1), (2, 2)]


def test_records_that_do_not_decode_are_an_error_or_left_out(both: Both) -> None:
    (said,) = both.refusals("SELECT id, n FROM strict")
    assert said.startswith(
        "topic b-bad, partition 0, offset 1 does not decode: value: it is not JSON of the schema: "
        "field n is no int; mend the format or schema, or leave such records out: on_error=skip in"
    )
    note = "2 records of topic b-bad do not decode, and are left out (on_error)"
    wanted = [("k1", 1), ("k2", 2), ("k3", None)]
    assert both("SELECT id, n FROM lenient ORDER BY id") == wanted
    # Which they are does not depend on what is asked for.
    assert both("SELECT id FROM lenient ORDER BY id") == [("k1",), ("k2",), ("k3",)]
    assert both("SELECT count(*) FROM lenient") == [(3,)]
    # Of a table, what was before them still counts.
    assert both("SELECT id, n FROM counts ORDER BY id") == wanted
    assert both("SELECT n FROM ints ORDER BY n") == [(1,), (2,)]
    for engine in (both.local, both.spark):
        for text in ("SELECT * FROM lenient", "SELECT * FROM lenient WHERE n > 99"):
            assert both.ask(engine, text, Session())[2] == [note]
        assert both.ask(engine, "SELECT n FROM ints", Session())[2] == [
            "1 record of topic b-bad-ints does not decode, and is left out (on_error)"
        ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT pge FROM pages", "there is no column pge: did you mean page?"),
        ("SELECT p.pge FROM pages p", "there is no column p.pge: did you mean page?"),
        (
            "SELECT nothing FROM pages WHERE _offset > 0",
            "there is no column nothing; there are id, page",
        ),
        ("SELECT id FROM pages GROUP BY pag", "there is no column pag: did you mean page?"),
        ("SELECT n FROM (SELECT _offset AS m FROM pages)", "there is no column n; there are m"),
        ("SELECT place.citty FROM nested", "there is no field citty: did you mean city?"),
        (
            "SELECT p.pge FROM pages p JOIN titles t ON p.id = t.id",
            "there is no column p.pge: did you mean page?",
        ),
    ],
)
def test_names_that_are_not_there(both: Both, text: str, words: str) -> None:
    assert both.refusals(text) == {words}


def test_spark_has_the_functions_that_are_listed(spark: "SparkSession") -> None:
    names = {str(row[0]) for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert {name for name in names if name.replace("_", "").isalnum()} == SPARK_FUNCTIONS


def test_streams_within_a_time_of_each_other(both: Both) -> None:
    text = """SELECT a.page AS one, b.page AS other FROM clicks a JOIN clicks b
      WITHIN (0 SECONDS, 62 SECONDS) ON a.id = b.id OR b.id = 'c3' ORDER BY 1, 2"""
    assert both(text) == [("/", "/"), ("/", "/b"), ("/a", "/a"), ("/b", "/b")]
    later = text.replace("(0 SECONDS, 62 SECONDS)", "1 SECOND GRACE PERIOD 1 MINUTE")
    assert both(later) == [("/", "/"), ("/a", "/a"), ("/b", "/b")]
