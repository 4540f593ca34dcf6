import pytest

from moldau._native.fetched import Record
from moldau.cli.frame import CommandError
from moldau.cli.kafka_tools.console_consumer import record_format
from moldau.cli.record_text import record_object

HEADERS = [("h", b"x"), ("n", None)]


def record(timestamp_ms: int, key: bytes | None, value: bytes | None) -> Record:
    return Record("t", 3, offset=17, timestamp_ms=timestamp_ms, key=key, value=value)


RECORD = Record(
    "t", 3, offset=17, timestamp_ms=1000, key=b"k", value=b"v", headers=HEADERS, leader_epoch=2
)
BARE = record(-1, None, None)
ALL = {
    f"print.{name}": "true"
    for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")
}


def test_what_the_console_consumer_prints() -> None:
    assert record_format({}).line(RECORD) == b"v\n"
    assert record_format(ALL).line(RECORD) == (
        b"CreateTime:1000\tPartition:3\tOffset:17\tDelivery:NOT_PRESENT\tEpoch:2\th:x,n:null\tk\tv\n"
    )
    assert record_format(ALL).line(BARE) == (
        b"NO_TIMESTAMP\tPartition:3\tOffset:17\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\tNO_HEADERS"
        b"\tnull\tnull\n"
    )


def test_separators_can_be_chosen() -> None:
    properties = {
        "print.key": "true",
        "print.value": "false",
        "key.separator": "=",
        "line.separator": ";",
        "null.literal": "-",
    }
    assert record_format(properties).line(BARE) == b"-;"
    assert record_format(properties | {"print.value": "TRUE"}).line(RECORD) == b"k=v;"


def test_numbers_of_kafkas_own_serializers() -> None:
    name = "org.apache.kafka.common.serialization.LongDeserializer"
    form = record_format({"value.deserializer": name})
    assert form.line(record(0, None, (42).to_bytes(8))) == b"42\n"
    with pytest.raises(CommandError, match="8 bytes is wanted, and there are 1"):
        form.line(RECORD)


def test_other_classes_are_refused() -> None:
    with pytest.raises(CommandError, match=r"my\.Class: this names a Java class"):
        record_format({"key.deserializer": "my.Class"})


def test_json() -> None:
    assert record_object(record(1000, b"\xff", b"v")) == {
        "topic": "t",
        "partition": 3,
        "offset": 17,
        "timestamp_ms": 1000,
        "key_base64": "/w==",
        "value": "v",
        "headers": [],
    }
