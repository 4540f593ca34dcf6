"""SQL files under the `pipeline` fixture: the shapes of ksqlDB's tutorials, with their results."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines import PipelineError
from moldau.testing import Pipeline

Start = Callable[..., Pipeline]

ORDERS = """
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE, at TIMESTAMP)
  WITH (topic='orders', format='json', event_time='at', watermark='10 seconds');
"""
USERS = """
CREATE TABLE users (user STRING PRIMARY KEY, name STRING, city STRING)
  WITH (topic='users', format='json');
"""
MINUTE = {"start": "2026-01-01T00:00:00.000000Z", "end": "2026-01-01T00:01:00.000000Z"}


@pytest.fixture
def file(tmp_path: Path, spark: object) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "shop.sql"
        path.write_text(text)
        return str(path)

    return write


def order(number: int, user: str | None, second: int, amount: float = 1.0) -> dict[str, Any]:
    at = f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
    return {"id": f"o{number}", "user": user, "amount": amount, "at": at}


def test_the_shop_of_the_guide(pipeline: Start, file: Callable[[str], str]) -> None:
    text = f"""{ORDERS}{USERS}
    CREATE STREAM enriched AS SELECT o.id, o.amount, u.city, u.user
      FROM orders o LEFT JOIN users u ON o.user = u.user;
    CREATE TABLE totals AS SELECT user, window, sum(amount) AS total
      FROM orders GROUP BY user, window(at, '1 minute') EMIT FINAL;
    CREATE STREAM large AS SELECT *, upper(user) AS who FROM enriched WHERE amount > 2;
    SELECT * FROM totals WHERE user = 'ann';
    SELECT * FROM enriched EMIT CHANGES LIMIT 5;
    """
    with pipeline(file(text)) as t:
        t.send("users", [{"user": "ann", "name": "Ann", "city": "Prague"}])
        t.send("orders", [order(1, "ann", 1, 2.5), order(2, "bob", 2, 4), order(3, None, 3, 1)])
        t.run()
        assert sorted(t.rows("enriched"), key=lambda row: str(row["id"])) == [
            {"id": "o1", "amount": 2.5, "city": "Prague", "user": "ann"},
            {"id": "o2", "amount": 4.0, "city": None, "user": None},
            {"id": "o3", "amount": 1.0, "city": None, "user": None},
        ]
        assert sorted(each.key or b"" for each in t.records("enriched")) == [b"o1", b"o2", b"o3"]
        assert {(row["id"], row["who"]) for row in t.rows("large")} == {("o1", "ANN"), ("o2", None)}
        assert t.rows("totals") == []
        t.advance("at", "10 minutes")
        t.run()
        totals = sorted(t.rows("totals"), key=lambda row: str(row["user"]))
        assert totals[:2] == [
            {"user": None, "window": MINUTE, "total": 1.0},
            {"user": "ann", "window": MINUTE, "total": 2.5},
        ]
        assert b'"user":"bob","window":{"start":"2026-01-01T00:00:00.000000Z"' in (
            b"".join(each.key or b"" for each in t.records("totals"))
        )


def test_event_time_may_be_a_number_since_1970(pipeline: Start, file: Callable[[str], str]) -> None:
    text = """
    CREATE STREAM clicks (id STRING KEY, page STRING, at BIGINT)
      WITH (topic='clicks', timestamp='at', watermark='10 seconds');
    CREATE TABLE minutes AS SELECT page, window, max(at) AS last FROM clicks
      GROUP BY page, window(at, '1 minute') EMIT FINAL;
    CREATE STREAM copied WITH (event_time='seconds', event_time_unit='s', watermark='1 second')
      AS SELECT id, at, unix_seconds(at) AS seconds FROM clicks;
    CREATE STREAM again (id STRING KEY, at BIGINT)
      WITH (topic='again', event_time='at', event_time_unit='us', partitions=1);
    INSERT INTO again SELECT id, seconds FROM copied;
    INSERT INTO again (id, at) SELECT id, 5 FROM copied;
    """
    noon_ms = 1767268800_000
    with pipeline(file(text)) as t:
        t.send("clicks", [{"id": "c1", "page": "/", "at": noon_ms + 1500}])
        t.send("clicks", [{"id": "c2", "page": "/", "at": noon_ms - 1000}])
        t.run()
        t.advance("at", "10 minutes")
        t.run()
        # A number is a time; what a query makes of it is written as times are.
        first = {"start": "2026-01-01T11:59:00.000000Z", "end": "2026-01-01T12:00:00.000000Z"}
        second = {"start": first["end"], "end": "2026-01-01T12:01:00.000000Z"}
        assert sorted(t.rows("minutes"), key=str) == [
            {"page": "/", "window": first, "last": "2026-01-01T11:59:59.000000Z"},
            {"page": "/", "window": second, "last": "2026-01-01T12:00:01.500000Z"},
        ]
        # A number that is given as it is stays one, and is a time to those who read it.
        seconds = noon_ms // 1000
        assert sorted(t.rows("copied"), key=str) == [
            {"id": "c1", "at": "2026-01-01T12:00:01.500000Z", "seconds": seconds + 1},
            {"id": "c2", "at": "2026-01-01T11:59:59.000000Z", "seconds": seconds - 1},
        ]
        assert sorted(row["at"] for row in t.rows("again")) == [
            5, 5, (seconds - 1) * 1_000_000, (seconds + 1) * 1_000_000,
        ]  # fmt: skip


def test_columns_of_records_in_queries_that_run_for_ever(
    pipeline: Start, file: Callable[[str], str]
) -> None:
    text = f"""{ORDERS}{USERS}
    CREATE STREAM placed AS SELECT *, _topic, _partition, _offset AS place FROM orders
      WHERE _headers IS NULL AND rowtime = at;
    CREATE STREAM met AS SELECT o.*, o._offset AS mine, u._offset AS theirs,
        u.rowtime IS NULL AS never
      FROM orders o JOIN users u ON o.user = u.user;
    CREATE TABLE versions AS SELECT user, _offset AS version FROM users;
    CREATE STREAM log (place BIGINT) WITH (topic='log', partitions=1);
    INSERT INTO log SELECT _offset FROM orders;
    """
    with pipeline(file(text)) as t:
        t.send("users", [{"user": "ann", "name": "Ann"}, {"user": "ann", "name": "Anna"}])
        t.send("orders", [order(1, "ann", 1)])
        t.run()
        placed = {**order(1, "ann", 1), "at": "2026-01-01T00:00:01.000000Z"}
        where = {"_topic": "orders", "_partition": 0, "place": 0}
        assert t.rows("placed") == [placed | where]
        (met,) = t.rows("met")
        assert met == placed | {"mine": 0, "theirs": 1, "never": False}
        assert t.rows("versions")[-1] == {"user": "ann", "version": 1}
        assert t.rows("log") == [{"place": 0}]


def test_counts_by_key_and_windows_behind_a_join(
    pipeline: Start, file: Callable[[str], str]
) -> None:
    text = f"""{ORDERS}{USERS}
    CREATE TABLE counts AS SELECT user, count(*) AS n FROM orders GROUP BY user EMIT CHANGES;
    CREATE TABLE minutes AS SELECT window, count(*) AS n
      FROM orders GROUP BY window(at, '1 minute') HAVING count(*) > 1;
    CREATE TABLE busy AS SELECT window, n, window.start AS since FROM minutes WHERE n > 3;
    CREATE STREAM plain (user STRING) WITH (topic='plain');
    CREATE TABLE recent AS SELECT user, count(*) AS n FROM plain
      WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user EMIT CHANGES;
    CREATE TABLE by_city AS
      SELECT city, sum(o.amount) AS total FROM orders o JOIN users u ON o.user = u.user
      WHERE amount > 1 WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY u.city EMIT FINAL;
    CREATE TABLE visits AS SELECT user, session_window, count(*) AS n
      FROM orders GROUP BY user, session_window(at, '20 seconds');
    """
    with pipeline(file(text)) as t:
        t.send("users", [{"user": "ann", "name": "Ann", "city": "Prague"}])
        t.send(
            "orders",
            [
                order(1, "ann", 1, 2.5),
                order(2, "ann", 12, 4),
                order(3, "ann", 59, 0.5),
                order(4, None, 2),
            ],
        )
        t.send("plain", [{"user": "eva"}, {"user": "eva"}])
        t.run()
        assert t.rows("counts") == [{"user": "ann", "n": 3}]
        recent = [(row["user"], row["n"]) for row in t.rows("recent")]
        assert recent == [("eva", 2)]
        # Made once more, every query finds its state again.
        t.restart()
        t.advance("at", "10 minutes")
        t.run()
        assert t.rows("by_city") == [{"city": "Prague", "total": 6.5, "window": MINUTE}]
        assert t.rows("minutes") == [{"window": MINUTE, "n": 4}]
        (busy,) = t.records("busy")
        assert json.loads(busy.key or b"") == MINUTE
        assert json.loads(busy.value or b"")["since"] == MINUTE["start"]
        visits = [
            (row["n"], row["session_window"]["end"]) for row in t.rows("visits") if row["user"]
        ]
        assert visits == [
            (2, "2026-01-01T00:00:32.000000Z"),
            (1, "2026-01-01T00:01:19.000000Z"),
        ]


def test_tables_of_tables(pipeline: Start, file: Callable[[str], str]) -> None:
    text = f"""{USERS}
    CREATE TABLE points (user STRING PRIMARY KEY, points INT, bonus INT) WITH (topic='points');
    CREATE TABLE guests AS SELECT user AS who, upper(name) AS name, 10 / length(city) AS x
      FROM users WHERE length(city) > 0;
    CREATE TABLE standings AS SELECT u.user, u.city, p.points + p.bonus AS points
      FROM users u LEFT JOIN points p ON p.user = u.user WHERE u.name <> 'Bob';
    CREATE TABLE prices (shop STRING PRIMARY KEY, item INT PRIMARY KEY, price DOUBLE)
      WITH (topic='prices');
    CREATE TABLE stock (thing INT PRIMARY KEY, place STRING PRIMARY KEY, pieces INT)
      WITH (topic='stock');
    CREATE TABLE worth AS SELECT s.thing, p.shop, p.price * s.pieces AS worth
      FROM prices p JOIN stock s ON s.thing = p.item AND s.place = p.shop;
    CREATE STREAM wishes (id STRING KEY, what INT, wher STRING) WITH (topic='wishes');
    CREATE STREAM costs AS SELECT w.id, p.price FROM wishes w
      JOIN prices p ON p.item = w.what AND p.shop = w.wher;
    """
    with pipeline(file(text)) as t:
        t.send("users", [
            {"user": "ann", "name": "Ann", "city": "Brno!"},
            {"user": "bob", "name": "Bob", "city": ""},
        ])  # fmt: skip
        t.send("points", [{"user": "ann", "points": 7, "bonus": 1}])
        t.send("prices", [{"shop": "a", "item": 1, "price": 2.5}])
        t.send("stock", [{"thing": 1, "place": "a", "pieces": 4}])
        t.send("wishes", [{"id": "w", "what": 1, "wher": "a"}])
        t.run()
        (worth,) = t.records("worth")
        assert worth.key == b'{"thing":1,"shop":"a"}'
        assert worth.value == b'{"thing":1,"shop":"a","worth":10.0}'
        assert t.rows("costs") == [{"id": "w", "price": 2.5}]
        assert {each.key: each.value for each in t.records("guests")} == {
            b"ann": b'{"who":"ann","name":"ANN","x":2.0}',
            b"bob": None,
        }
        standings = {
            each.key: row
            for each, row in zip(t.records("standings"), t.rows("standings"), strict=True)
        }
        assert standings == {b"ann": {"user": "ann", "city": "Brno!", "points": 8}, b"bob": None}
        t.send("users", [{"user": "ann", "name": "Ann", "city": ""}])
        t.delete("points", "ann")
        t.run()
        assert t.rows("guests")[-1] is None
        assert t.rows("standings")[-1] == {"user": "ann", "city": "", "points": None}
        t.delete("users", "ann")
        t.run()
        assert t.rows("standings")[-1] is None


def test_groups_of_tables(pipeline: Start, file: Callable[[str], str]) -> None:
    text = f"""{USERS}
    CREATE TABLE points (user STRING PRIMARY KEY, points INT) WITH (topic='points');
    CREATE TABLE by_city AS
      SELECT u.city, count(*) AS people, 1.5 * SUM(p.points) + count(*) AS score
      FROM users u LEFT JOIN points p ON u.user = p.user WHERE u.name <> 'nobody'
      GROUP BY u.city;
    CREATE TABLE crowds AS SELECT upper(city) AS `where`, max(name) last, concat('>', min(name))
      FROM users GROUP BY 1 HAVING count(*) > 1 AND last <> 'Zoe';
    CREATE TABLE cities AS SELECT city FROM users GROUP BY city;
    """
    with pipeline(file(text)) as t:
        t.send("users", [
            {"user": "ann", "name": "Ann", "city": "Brno"},
            {"user": "bob", "name": "Bob", "city": "brno"},
            {"user": "cid", "name": "nobody", "city": "Brno"},
        ])  # fmt: skip
        t.send("points", [{"user": "ann", "points": 8}])
        t.run()
        assert sorted(t.rows("by_city"), key=repr) == [
            {"city": "Brno", "people": 1, "score": 13.0},
            {"city": "brno", "people": 1, "score": None},
        ]
        crowd = {"where": "BRNO", "last": "nobody", "concat(>, min(name))": ">Ann"}
        assert t.rows("crowds") == [crowd]
        t.restart()
        t.delete("users", "cid")
        t.send("users", [{"user": "ann", "name": "Zoe", "city": "brno"}])
        t.run()
        found = [
            (record.key, row)
            for record, row in zip(t.records("by_city"), t.rows("by_city"), strict=True)
        ]
        assert sorted(found[2:], key=repr) == [
            (b"Brno", None),
            (b"brno", {"city": "brno", "people": 2, "score": 14.0}),
        ]
        assert t.rows("crowds")[1:] == [None]
        records = [(record.key, record.value) for record in t.records("cities")]
        assert sorted(records[:2]) == [
            (b"Brno", b'{"city":"Brno"}'),
            (b"brno", b'{"city":"brno"}'),
        ]
        assert records[2:] == [(b"Brno", None)]


def test_tables_by_foreign_keys(pipeline: Start, file: Callable[[str], str]) -> None:
    text = f"""{USERS}
    CREATE TABLE cities (id STRING PRIMARY KEY, country STRING) WITH (topic='cities');
    CREATE TABLE bought (id INT PRIMARY KEY, who STRING, amount INT) WITH (topic='bought');
    CREATE TABLE enriched AS SELECT b.id, u.name, c.country, b.amount FROM bought b
      JOIN users u ON b.who = u.user LEFT JOIN cities c ON u.city = c.id WHERE b.amount > 0;
    CREATE TABLE by_country AS SELECT country, sum(amount) AS total FROM bought b
      JOIN users u ON u.user = b.who JOIN cities c ON c.id = u.city GROUP BY country;
    """
    with pipeline(file(text)) as t:
        t.send("users", [{"user": "ann", "name": "Ann", "city": "Brno"}])
        t.send("cities", [{"id": "Brno", "country": "CZ"}])
        t.send(
            "bought", [{"id": n, "who": who, "amount": n} for n, who in [(1, "ann"), (2, "bob")]]
        )
        t.run()
        assert t.rows("enriched") == [{"id": 1, "name": "Ann", "country": "CZ", "amount": 1}]
        assert t.rows("by_country") == [{"country": "CZ", "total": 1}]
        t.restart()
        t.send("users", [{"user": "bob", "name": "Bob", "city": "Graz"}])
        t.send("bought", [{"id": 1, "who": "bob", "amount": 5}])
        t.run()
        assert sorted(t.rows("enriched")[1:], key=repr) == [
            {"id": 1, "name": "Bob", "country": None, "amount": 5},
            {"id": 2, "name": "Bob", "country": None, "amount": 2},
        ]
        assert t.rows("by_country")[1:] == [None]


def test_streams_with_streams_partitions_and_inserts(
    pipeline: Start, file: Callable[[str], str]
) -> None:
    text = f"""{ORDERS}
    CREATE STREAM paid (id STRING KEY, value INT, at TIMESTAMP)
      WITH (topic='payments', event_time='at', watermark='10 seconds');
    CREATE STREAM settled AS SELECT o.id, p.value FROM orders o JOIN paid p
      ON o.id = p.id AND p.at BETWEEN o.at AND o.at + INTERVAL 1 MINUTE;
    CREATE STREAM by_user AS SELECT user, rowtime AS t, value FROM
      (SELECT user, at AS rowtime, '{{}}' AS value FROM orders) PARTITION BY user;
    CREATE STREAM all_amounts (k STRING KEY, amount DOUBLE) WITH (topic='amounts');
    INSERT INTO all_amounts SELECT id, amount FROM orders;
    INSERT INTO all_amounts (amount, k) SELECT value, id FROM paid;
    """
    with pipeline(file(text)) as t:
        t.send("orders", [order(1, "ann", 1, 2.5), order(2, "bob", 2)])
        t.send("payments", [{"id": "o1", "value": 3, "at": "2026-01-01T00:00:30Z"}])
        t.run()
        assert t.rows("settled") == [{"id": "o1", "value": 3}]
        assert t.rows("by_user")[0]["value"] == "{}"
        assert sorted((each.key, each.value) for each in t.records("amounts")) == [
            (b"o1", b'{"k":"o1","amount":2.5}'),
            (b"o1", b'{"k":"o1","amount":3.0}'),
            (b"o2", b'{"k":"o2","amount":1.0}'),
        ]


REFUSED = {
    "CREATE TABLE t AS SELECT id FROM orders": "without GROUP BY every row of orders is a row",
    "CREATE STREAM s AS SELECT user, count(*) AS n FROM orders GROUP BY user": "use CREATE TABLE",
    "CREATE STREAM s AS SELECT count(*) AS n FROM orders": "an aggregate is a table",
    "CREATE STREAM s AS SELECT * FROM users": "a SELECT of tables is a table; use CREATE TABLE",
    "CREATE TABLE t AS SELECT name FROM users": "users.user is the table's key, so select it too",
    "CREATE TABLE t AS SELECT count(*) AS n FROM users": "say that in GROUP BY, column by column",
    "CREATE TABLE t AS SELECT count(*) AS n FROM users GROUP BY city": (
        "GROUP BY city: it belongs to the table's key, so select it too"
    ),
    "CREATE TABLE t AS SELECT upper(city) AS city, count(*) AS n FROM users GROUP BY city": (
        "GROUP BY city: it belongs to the table's key, so select it too, by itself"
    ),
    "CREATE TABLE t AS SELECT city, name, count(*) AS n FROM users GROUP BY city": (
        "name"
    ),
    "CREATE TABLE t AS SELECT upper(city) AS c, upper(city) || '!' AS d, count(*) AS n FROM users "
    "GROUP BY upper(city)": "what is grouped by as an expression is selected by itself",
    "CREATE TABLE t AS SELECT city, collect_list(name) AS n FROM users GROUP BY city": (
        "collect_list(name): of a table's groups there are count, sum, avg, min and max"
    ),
    "CREATE TABLE t AS SELECT city, count(DISTINCT name) AS n FROM users GROUP BY city": (
        "count(DISTINCT name): of a table's groups there are count, sum, avg, min and max"
    ),
    "CREATE TABLE t AS SELECT city, sum(name) AS n FROM users GROUP BY city": (
        "sum(name): it is string, no number; cast it"
    ),
    "CREATE TABLE t AS SELECT u.user FROM users u FULL JOIN users v ON u.city = v.user": (
        "FULL JOIN v: by columns that are not the whole key, of tables there are JOIN and LEFT"
    ),
    "CREATE STREAM s AS SELECT * FROM orders o JOIN users u ON o.user = u.user": (
        "there are two columns user: call one something else"
    ),
    "CREATE STREAM s AS SELECT amont FROM orders": "there is no column amont: did you mean amount?",
    "CREATE STREAM s AS SELECT id FROM oders": "no stream or table oders: did you mean orders",
    "CREATE STREAM s AS SELECT o.amont FROM orders o JOIN users u ON o.user = u.user": (
        "there is no column o.amont: did you mean amount?"
    ),
    "CREATE STREAM s AS SELECT name FROM orders o JOIN users u ON o.amount = u.user": (
        "ON o.amount: it is double, and u.user is string; cast it"
    ),
    "CREATE TABLE t AS SELECT user, session_window, count(*) AS n FROM orders GROUP BY user, "
    "session_window(at, '1 minute') EMIT CHANGES": "session windows only when they are over",
    "INSERT INTO orders SELECT id FROM orders": "there are 4 columns",
    "CREATE STREAM s WITH (format='raw') AS SELECT id FROM orders": "queries write JSON, not raw",
}  # fmt: skip


def test_what_is_refused_says_why(file: Callable[[str], str]) -> None:
    from moldau.pipelines.supervision.app_file import load_app

    for statement, said in REFUSED.items():
        path = file(f"{ORDERS}{USERS}{statement};")
        with pytest.raises(PipelineError) as error:
            load_app(path)
        line = str(error.value)
        assert said in line, (statement, line)
        assert "\n" not in line
        assert "_pyspark" not in line, line
        assert "__moldau" not in line, line
