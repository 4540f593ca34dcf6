"""What Kafka's tools take, taken apart."""

import argparse
from pathlib import Path

import pytest

from moldau.cli.frame import CommandError
from moldau.cli.kafka_tools import console_consumer, console_producer, dump_log
from moldau.cli.kafka_tools.configs import parse_added
from moldau.cli.kafka_tools.delete_records import read_offsets
from moldau.cli.kafka_tools.face import client_settings, include_list
from moldau.client.producer_settings import ProducerSettings
from moldau.kernel.ids import TopicPartition


def test_configs_with_lists() -> None:
    assert parse_added("a=1, b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}
    with pytest.raises(CommandError, match="'b'"):
        parse_added("a=1,b")


def test_patterns_of_topics() -> None:
    wanted = include_list("a.*,b")
    assert [name for name in ("abc", "b", "bc") if wanted.fullmatch(name)] == ["abc", "b"]
    with pytest.raises(CommandError, match="invalid regex"):
        include_list("a(")


def settings(**given: object) -> dict[str, object]:
    options = argparse.Namespace(**{"command_config": None, "command_property": None, **given})
    return client_settings(ProducerSettings, options, {"acks": None})


def test_a_clients_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "acks=1\nlinger.ms=3\nsecurity.protocol=PLAINTEXT\nsend.buffer.bytes=9\n"
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
    )
    found = settings(command_config=str(file), command_property=["acks=all"])
    assert found == {"acks": "all", "linger.ms": "3"}
    assert capsys.readouterr().err == (
        "moldau: warning: the setting send.buffer.bytes is not known here, and left out\n"
    )


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("interceptor.classes=my.Interceptor", "names a Java class"),
        ("security.protocol=SSL", "TLS and SASL are not done yet"),
        ("acks", "is not of the form name=value"),
    ],
)
def test_settings_that_cannot_be_followed(setting: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        settings(command_property=[setting])


@pytest.mark.parametrize("content", [b"\xff", None])
def test_a_file_of_settings_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError, match="not UTF-8" if content else "No such file"):
        settings(command_config=str(file))


@pytest.mark.parametrize(
    ("parser", "words"),
    [
        (console_consumer.make_parser(), ("--topic", "t", "--formatter", "my.Class")),
        (console_producer.make_parser(), ("--topic", "t", "--line-reader", "my.Class")),
        (dump_log.make_parser(), ("--files", "f", "--value-decoder-class", "my.Class")),
    ],
    ids=["formatter", "line reader", "decoder"],
)
def test_java_classes(
    parser: argparse.ArgumentParser, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if parser.prog != "kafka-dump-log":
        words += ("--bootstrap-server", "localhost:9092")
    with pytest.raises(SystemExit, match="1"):
        parser.parse_args(words)
    assert "my.Class: this names a Java class" in capsys.readouterr().err


def test_what_to_delete(tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    row = '{"topic": "t", "partition": 1, "offset": -1}'
    file.write_text(f'{{"partitions": [{row}], "version": 1}}')
    assert read_offsets(str(file)) == {TopicPartition("t", 1): -1}
    file.write_text(f'{{"partitions": [{row}, {row}]}}')
    with pytest.raises(CommandError, match="duplicate"):
        read_offsets(str(file))
    for wrong in ("[]", "{", '{"partitions": [{}]}', '{"partitions": [], "version": 2}'):
        file.write_text(wrong)
        with pytest.raises(CommandError, match=r"offsets\.json"):
            read_offsets(str(file))
