"""Headers that an app writes, as clients of others read them."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message

from moldau.pipelines import OptionError
from moldau.pipelines import functions as F  # noqa: N812
from moldau.pipelines.streams.headers import HeaderColumns
from moldau.testing.broker import Broker
from tests.spark.apps import ORDERS, Apps, order, send
from tests.spark.tables import put

Seen = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


def read_all(broker: Broker, topic: str, count: int) -> list[Seen]:
    """Return the records of a topic by confluent-kafka: key, value and headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        found: list[Message] = consumer.consume(count, 60)
    finally:
        consumer.close()
    assert not any(each.error() for each in found)
    return sorted((each.key(), each.value(), each.headers()) for each in found)


def test_columns_expressions_and_nulls_are_headers(apps: Apps, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=1)
    send(broker, topic, [order(1, "ann", 1, 2.5), {"id": "o2", "amount": 1}])
    app = apps.make()
    orders = app.stream(topic, "id string, user string, amount double")
    as_text = F.col("amount").cast("string")
    headers = {"who": "user", "source": F.lit("shop"), "é": F.encode(as_text, "UTF-8")}
    app.to(orders, f"{topic}-rows", key="id", headers=headers)
    counts = orders.filter("user IS NOT NULL").groupBy("user").agg(F.sum("amount").alias("total"))
    with pytest.warns(UserWarning, match="keeps every key"):
        updates = app.to(counts, f"{topic}-sums", key="user", headers={"who": "user"})
    assert updates.mode == "update"
    raw = orders.select("id", F.col("user").alias("value"))
    app.to(raw, f"{topic}-raw", key="id", headers={"none": F.lit(None)})
    app.run(once=True)
    assert read_all(broker, f"{topic}-rows", 2) == [
        (
            b"o1",
            b'{"id":"o1","user":"ann","amount":2.5}',
            [("who", b"ann"), ("source", b"shop"), ("é", b"2.5")],
        ),
        (
            b"o2",
            b'{"id":"o2","user":null,"amount":1.0}',
            [("who", None), ("source", b"shop"), ("é", b"1.0")],
        ),
    ]
    assert read_all(broker, f"{topic}-sums", 1) == [
        (b"ann", b'{"user":"ann","total":2.5}', [("who", b"ann")])
    ]
    assert read_all(broker, f"{topic}-raw", 2) == [
        (b"o1", b"ann", [("none", None)]),
        (b"o2", None, [("none", None)]),
    ]


def test_rows_of_a_table_have_headers_and_so_have_its_tombstones(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    put(broker, topic, ("ann", {"city": "Brno"}), ("bob", None))
    app = apps.make()
    users = app.table(topic, "user string", "city string")
    deleted = F.when(F.col("is_deleted"), b"1")
    app.to(users, f"{topic}-out", headers={"of": "user", "city": "city", "deleted": deleted})
    app.run(once=True)
    assert read_all(broker, f"{topic}-out", 2) == [
        (b"ann", b'{"city":"Brno"}', [("of", b"ann"), ("city", b"Brno"), ("deleted", None)]),
        (b"bob", None, [("of", b"bob"), ("city", None), ("deleted", b"1")]),
    ]


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        (lambda: {"trace": "shop"}, r'trace=shop: the rows have id, user, .*F\.lit\("shop"\)'),
        (lambda: {"n": "amount"}, r'n is double, .* as in F\.col\("amount"\)\.cast\("string"\)'),
        (lambda: {"n": F.col("nothing")}, "n: A column, .* `nothing` cannot be resolved"),
        (lambda: {"n": F.count("*").cast("string")}, "n: .*GROUP BY"),
    ],
)
def test_mistakes_are_one_line(
    apps: Apps, headers: Callable[[], HeaderColumns], words: str
) -> None:
    app = apps.make()
    orders = app.stream("orders", ORDERS)
    with pytest.raises(OptionError, match=f"^headers: {words}") as caught:
        app.to(orders, "out", headers=headers())
    assert "\n" not in str(caught.value)


def test_headers_are_given_once(apps: Apps) -> None:
    app = apps.make()
    letters = app.stream("letters", format="raw", metadata=["headers"])
    letters = letters.withColumnRenamed("_headers", "headers")
    with pytest.raises(OptionError, match="headers: the rows have a column of that name"):
        app.to(letters, "copies", headers={"again": F.lit("1")})
