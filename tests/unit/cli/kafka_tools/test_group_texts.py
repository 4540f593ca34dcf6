"""The texts of Kafka's tools for groups."""

from pathlib import Path

import pytest

from moldau.cli.frame import CommandError, UsageError
from moldau.cli.kafka_tools import consumer_groups, groups, share_groups
from moldau.cli.kafka_tools.columns import LAST, TextColumn, lines_of
from moldau.cli.kafka_tools.consumer_group_offsets import (
    parse_datetime,
    parse_duration,
    read_csv,
    to_csv,
)
from moldau.cli.kafka_tools.consumer_group_text import STATES, chosen, partitions_text
from moldau.cli.kafka_tools.java_errors import java_text
from moldau.client.errors import KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

PLANS = {"g": {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6}}


def test_columns() -> None:
    columns = (
        TextColumn("A", 3),
        TextColumn("B", 3, grows=False),
        TextColumn("C", LAST, grows=False),
    )
    lines = lines_of(columns, [("long", "wide", None), ("x", 1, "y")])
    assert lines == ["A    B   C", "long wide -", "x    1   y"]


def test_plans_as_csv(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    for is_single, names in ((True, ["g"]), (False, ["g", "h"])):
        file.write_text(to_csv(PLANS, is_single=is_single))
        assert read_csv(str(file), names) == PLANS
    for wrong in ("t,0\n", "t,x,1\n", "g,t,0,1,2\n"):
        file.write_text(wrong)
        with pytest.raises(CommandError, match=r"plan\.csv"):
            read_csv(str(file), ["g"])
    with pytest.raises(CommandError, match="No such file"):
        read_csv(str(tmp_path / "absent"), ["g"])


def test_times() -> None:
    assert parse_datetime("1970-01-01T00:00:01.500") == 1500
    assert parse_datetime("1970-01-01T01:00:00+01:00") == 0
    assert parse_duration("P1DT1H1M1S") == 90_061_000
    for parse, wrong in ((parse_datetime, "yesterday"), (parse_duration, "1h")):
        with pytest.raises(CommandError, match=wrong):
            parse(wrong)


def test_errors_as_java_says_them() -> None:
    assert java_text(KafkaError(ErrorCode.NON_EMPTY_GROUP, "g")) == (
        "org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty."
    )
    assert java_text(KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "g", "no g")).endswith(
        ".GroupIdNotFoundException: no g"
    )


def test_states_by_name() -> None:
    assert chosen("stable, EMPTY", "state", STATES) == ["Stable", "Empty"]
    assert chosen("", "state", STATES) == []
    with pytest.raises(UsageError, match="Invalid state list 'x'"):
        chosen("x", "state", STATES)


def test_assignments() -> None:
    keys = [TopicPartition("u", 0), TopicPartition("t", 10), TopicPartition("t", 2)]
    assert partitions_text(keys) == "t:2,10;u:0"
    assert partitions_text([]) == "-"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--list --describe", "exactly one action"),
        ("--describe", "takes one of these options: [group], [all-groups]"),
        ("--describe --group g --all-groups", "can't be used with"),
        ("--describe --group g --members --state", "at most one of these"),
        ("--describe --group g --state Stable", "does not take a value"),
        ("--delete --group g --topic t", "topic-specific"),
        ("--delete-offsets --group g", "takes the following options"),
        ("--list --group g", "can't be used with"),
        ("--reset-offsets --group g --topic t", "requires one of the following scenarios"),
        ("--reset-offsets --group g --to-latest", "One of the reset scopes"),
        ("--reset-offsets --group g --topic t --to-latest --to-earliest", "can't be used with"),
        ("--reset-offsets --group g --topic t --execute --dry-run", "only accepts one of"),
    ],
)
def test_wrong_usage(words: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        consumer_groups.main(["--bootstrap-server", "localhost:1", *words.split()])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "exactly one action"),
        ("--describe", "takes one of these options"),
        ("--reset-offsets --group g --topic t --to-latest", "[execute] or [dry-run]"),
        ("--reset-offsets --group g --to-latest --dry-run", "[all-topics], [topic]"),
        ("--reset-offsets --group g --topic t --dry-run", "requires one of"),
        ("--reset-offsets --dry-run", "takes the option: [group]"),
        ("--delete-offsets --group g", "takes the following options"),
    ],
)
def test_wrong_usage_of_share_groups(
    words: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        share_groups.main(["--bootstrap-server", "localhost:1", *words.split()])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("words", ["", "--list --group-type x", "--list --share --consumer"])
def test_wrong_usage_of_groups(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        groups.main(["--bootstrap-server", "localhost:1", *words.split()])
    assert capsys.readouterr().err


def test_expressions_are_validated(capsys: pytest.CaptureFixture[str]) -> None:
    assert consumer_groups.main(["--validate-regex", "a.*"]) == 0
    assert consumer_groups.main(["--validate-regex", "a("]) == 0
    valid, invalid = capsys.readouterr().out.splitlines()
    assert valid == "The regular expression `a.*` is valid."
    assert invalid.startswith("The regular expression `a(` is invalid: missing )")
