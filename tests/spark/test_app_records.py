"""How an app's records decode and encode, and what becomes of those that do not."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pytest
from fastavro import schemaless_writer

from moldau import Producer, Record
from moldau.pipelines import App
from moldau.pipelines.streams.dead_letter_headers import OFFSET, PARTITION, REASON, TOPIC
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.testing.broker import Broker
from tests.spark.apps import Apps, lag, values
from tests.spark.reading import read

Sent = tuple[bytes | None, bytes | None]
GOOD: Sent = (b"\0\0\0\7", b'{"n": 7}')
BAD_VALUE: Sent = (b"\0\0\0\1", b'{"n": "seven"}')
BAD_KEY: Sent = (b"\0", b'{"n": 8}')


AVRO = '{"type": "record", "name": "Click", "fields": [{"name": "at", "type": "long"}]}'


def avro_long(number: int) -> bytes:
    data = BytesIO()
    schemaless_writer(data, json.loads(AVRO), {"at": number})
    return data.getvalue()


def send_raw(broker: Broker, topic: str, *records: Sent, **options: Any) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for key, value in records:
            producer.send(topic, value, key=key, **options)


def copying(apps: Apps, topic: str, **options: Any) -> App:
    app = apps.make(**options)
    rows = app.stream(topic, "n int", key="k int", metadata=True)
    app.to(rows.select("k", "n", "_offset"), f"{topic}-copy", key="k")
    return app


def headers_of(record: Record) -> Mapping[str, bytes | None]:
    return dict(record.headers)


def test_dead_letters_are_written_once_with_where_they_come_from(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    send_raw(broker, topic, GOOD, BAD_VALUE, headers=[("h", b"1")])
    copying(apps, topic, on_error="dead-letter").run(once=True)
    send_raw(broker, topic, BAD_KEY, (None, None))
    copying(apps, topic, on_error="dead-letter").run(once=True)
    assert values(broker, f"{topic}-copy") == [
        {"k": 7, "n": 7, "_offset": 0},
        {"k": None, "n": None, "_offset": 3},
    ]
    first, second = read(broker.bootstrap_servers, f"{apps.name}.dead-letters")
    assert (first.key, first.value) == BAD_VALUE
    assert headers_of(first) == {
        "h": b"1",
        TOPIC: topic.encode(),
        PARTITION: b"0",
        OFFSET: b"1",
        REASON: b"value: it is not JSON of the schema: field n is no int",
    }
    assert (second.key, second.value) == BAD_KEY
    assert headers_of(second)[REASON] == b"key: 1 bytes, int has 4"
    assert lag(broker, f"moldau-{apps.name}:{apps.name}.dead-letters", topic) == 0


def test_what_does_not_decode_stops_the_query_or_is_left_out(
    apps: Apps, broker: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic(topic, partitions=1)
    send_raw(broker, topic, BAD_VALUE, GOOD)
    with pytest.raises(SystemExit, match="1"):
        copying(apps, topic).run(once=True)
    assert f"topic {topic}, partition 0, offset 0 does not" in capsys.readouterr().err
    copying(apps, topic, on_error="skip").run(once=True)
    assert [each["n"] for each in values(broker, f"{topic}-copy")] == [7]
    assert read(broker.bootstrap_servers, f"{topic}-copy")[0].key == GOOD[0]


@pytest.mark.parametrize(
    ("reading", "data"),
    [
        ({"schema": "at bigint"}, b'{"at": %d}'),
        ({"schema": AVRO, "format": "avro", "options": {"value.header": "none"}}, None),
    ],
    ids=["json", "avro"],
)
def test_event_time_may_be_a_number(
    apps: Apps, broker: Broker, topic: str, reading: dict[str, Any], data: bytes | None
) -> None:
    broker.create_topic(topic, partitions=1)
    noon_us, never = 1767268800_000001, 253402300800_000000
    for number in (noon_us, never):
        send_raw(broker, topic, (None, data % number if data else avro_long(number)))
    app = apps.make(on_error="dead-letter")
    clicks = app.stream(
        topic, **reading, event_time="at", event_time_unit="us", watermark="1 second"
    )
    app.to(clicks, f"{topic}-copy")
    app.run(once=True)
    assert values(broker, f"{topic}-copy") == [{"at": "2026-01-01T12:00:00.000001Z"}]
    (letter,) = read(broker.bootstrap_servers, f"{apps.name}.dead-letters")
    reason = (headers_of(letter)[REASON] or b"").decode()
    assert reason.startswith(
        "value: field at is not between the years 1 and 9999 in us; event_time"
    )


def test_raw_records_go_through_and_nulls_are_tombstones(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    send_raw(broker, topic, (b"a", b"\xff"), (b"a", None))
    app = apps.make()
    app.to(app.stream(topic, key="k string", format="raw"), f"{topic}-copy", key="k", partitions=3)
    assert [tuple(row) for row in app.preview(app.stream(topic, format="raw"))] == [
        (bytearray(b"\xff"),),
        (None,),
    ]
    app.run(once=True)
    found = read(broker.bootstrap_servers, f"{topic}-copy")
    assert [(record.key, record.value) for record in found] == [(b"a", b"\xff"), (b"a", None)]


def test_a_backfill_reads_a_time_into_a_topic_of_its_own(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    for second in (1, 2, 3, 4):
        value = f'{{"n": {second}}}'.encode()
        send_raw(broker, topic, (b"\0\0\0\0", value), timestamp_ms=second * 1000)
    copying(apps, topic).run(once=True)
    with run_with(RunOptions(begin_ms=2000, end_ms=4000, into=f"{topic}-again")):
        copying(apps, topic).run(once=True)
    assert [each["n"] for each in values(broker, f"{topic}-copy")] == [1, 2, 3, 4]
    assert [each["n"] for each in values(broker, f"{topic}-again")] == [2, 3]
