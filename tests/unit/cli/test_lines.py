import pytest

from moldau.cli.frame import CommandError
from moldau.cli.kafka_tools.console_producer import line_format
from moldau.cli.lines import LineFormat, LineRecord


def test_a_line_is_a_value_whatever_its_bytes() -> None:
    records = LineFormat().records([b"a\tb\r\n", b"\xff\xfe\n", b"\n", b"last"])
    assert [record.value for record in records] == [b"a\tb", b"\xff\xfe", b"", b"last"]


def test_keys() -> None:
    assert LineFormat(key_separator=b":").parse(1, b"k:v:w") == LineRecord([], b"k", b"v:w")


def test_headers() -> None:
    form = line_format({"parse.key": "true", "parse.headers": "true", "null.marker": "NULL"})
    assert form.parse(1, b"a:1,b:NULL\tk\tv") == LineRecord([("a", b"1"), ("b", None)], b"k", b"v")
    assert form.parse(1, b"NULL\tNULL\tNULL") == LineRecord([], None, None)


def test_a_missing_separator_is_named_with_its_line() -> None:
    records = LineFormat(key_separator=b"=").records([b"a=1", b"nothing"])
    assert next(records).key == b"a"
    with pytest.raises(CommandError, match="No key separator found on line number 2: 'nothing'"):
        next(records)


def test_faults_can_be_skipped() -> None:
    form = line_format({"parse.key": "true", "ignore.error": "true"})
    assert form.parse(1, b"nothing") == LineRecord([], None, b"nothing")


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(CommandError, match=r"key\.separator"):
        line_format({"parse.key": "true", "key.separator": ""})
