"""A source's options: those of Spark's Kafka connector, and one line for each that is wrong."""

import pytest

from moldau.client.errors import ConfigError
from moldau.pipelines.connector.bounds import AtEdge, AtOffsets, AtTimes
from moldau.pipelines.connector.offsets import EARLIEST, LATEST
from moldau.pipelines.connector.options import IgnoredOptionWarning
from moldau.pipelines.connector.source_options import (
    COLUMNS,
    SourceOptions,
    read_source_options,
)
from moldau.pipelines.connector.topics import Assigned, Matched, Subscribed
from moldau.pipelines.errors import OptionError

NEEDED = {"kafka.bootstrap.servers": "h:1", "subscribe": "clicks"}


def read(**options: str) -> SourceOptions:
    return read_source_options(NEEDED | options)


def test_defaults() -> None:
    options = read()
    assert options.topics == Subscribed(("clicks",))
    assert options.columns == COLUMNS[:-1]
    assert options.batch_bounds() == (AtEdge(EARLIEST), AtEdge(LATEST))
    assert options.stream_start() == AtEdge(LATEST)
    assert options.isolation_level == "read_committed"
    assert options.fails_on_data_loss
    assert options.group_id is None
    assert options.delay_max_ms == 900_000


def test_topics_are_named_matched_or_assigned() -> None:
    servers = {"kafka.bootstrap.servers": "h:1"}
    assert read(subscribe=" a, b,a").topics == Subscribed(("a", "b"))
    matched = read_source_options({**servers, "subscribepattern": "a-.*"}).topics
    assert isinstance(matched, Matched)
    assert matched.choose(["ba-1", "a-2", "a-1", "a"]) == ("a-1", "a-2")
    assigned = read_source_options({**servers, "assign": '{"a":[1]}'}).topics
    assert assigned == Assigned((("a", 1),))


def test_times_win_over_offsets() -> None:
    options = read(
        startingTimestamp="5",
        startingOffsets="earliest",
        endingOffsetsByTimestamp='{"t":{"0":7}}',
        startingOffsetsByTimestampStrategy="LATEST",
    )
    assert options.batch_bounds() == (
        AtTimes("startingTimestamp", 5, is_latest_allowed=True),
        AtTimes("endingOffsetsByTimestamp", {("t", 0): 7}, is_latest_allowed=True),
    )
    assert read(startingOffsets='{"t":{"0":-1}}').stream_start() == AtOffsets(
        "startingOffsets", {("t", 0): -1}
    )


def test_the_driver_and_the_tasks_have_the_settings_that_they_know() -> None:
    options = read_source_options(
        NEEDED | {"kafka.group.id": "g", "kafka.fetch.max.bytes": "9", "kafka.client.id": "me"}
    )
    assert options.group_id == "g"
    assert options.admin_config == {"bootstrap.servers": "h:1", "client.id": "me"}
    assert options.consumer_config["fetch.max.bytes"] == "9"
    assert options.consumer_config["auto.offset.reset"] == "none"
    assert "group.id" not in options.consumer_config


def test_columns_are_chosen_in_any_order() -> None:
    assert read(columns="value, OFFSET").columns == ("value", "offset")
    assert read(columns="headers").columns == ("headers",)
    assert read(includeHeaders="true").columns == COLUMNS


@pytest.mark.parametrize(
    ("text", "ms"), [("30s", 30_000), ("5", 5), ("2min", 120_000), ("1 h", 3_600_000)]
)
def test_a_delay_has_a_unit(text: str, ms: int) -> None:
    assert read(maxTriggerDelay=text).delay_max_ms == ms


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": " , "}, "option subscribe= , : names of topics"),
        ({"assign": '{"a":[0]}'}, "options subscribe and assign exclude each other"),
        ({"startingOffsets": "first"}, "option startingOffsets=first: earliest, latest or JSON"),
        ({"startingTimestamp": "now"}, "option startingTimestamp=now: a number from 0 on"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "error or latest is allowed"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger=0: a number from 1 on"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "minOffsetsPerTrigger=5 is"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay=soon: a duration"),
        ({"minPartitions": "-1"}, "option minPartitions=-1"),
        ({"includeHeaders": "yes"}, "option includeHeaders=yes: true or false"),
        ({"columns": "value,size"}, "there is no column size; key, value,"),
        ({"columns": "value,value"}, "value is there twice"),
        ({"startingOfsets": "latest"}, "there is no option startingofsets: did you mean startingO"),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "committed to kafka.group.id"),
        ({"kafkaConsumer.pollTimeoutMs": "5"}, "use kafka.default.api.timeout.ms"),
        ({"fetchOffset.numRetries": "5"}, "use kafka.default.api.timeout.ms"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_source_options(NEEDED | options)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_a_topic_or_a_broker_nothing_is_read() -> None:
    with pytest.raises(OptionError, match="no topic is named"):
        read_source_options({"kafka.bootstrap.servers": "h:1"})
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        read_source_options({"subscribe": "clicks"})
    with pytest.raises(OptionError, match=r"subscribePattern=\(: "):
        read_source_options({"kafka.bootstrap.servers": "h:1", "subscribePattern": "("})


def test_the_client_says_which_settings_it_does_not_know() -> None:
    with pytest.raises(ConfigError, match=r"fetch\.mx\.bytes: did you mean fetch\.max\.bytes"):
        read_source_options(NEEDED | {"kafka.fetch.mx.bytes": "5"})


def test_streams_and_batches_have_options_of_their_own() -> None:
    with pytest.raises(OptionError, match="option endingOffsets: a stream does not end"):
        read(endingOffsets="latest").stream_start()
    with pytest.warns(IgnoredOptionWarning, match="maxOffsetsPerTrigger is for streams"):
        read(maxOffsetsPerTrigger="5").batch_bounds()
    for name, edge in (("startingOffsets", "latest"), ("endingOffsets", "earliest")):
        with pytest.raises(OptionError, match=f"option {name}: a batch cannot"):
            read(**{name: edge}).batch_bounds()
    with pytest.raises(OptionError, match="cannot begin at latest"):
        read(startingOffsets='{"t":{"0":-1}}').batch_bounds()


def test_no_group_is_joined_whatever_its_prefix() -> None:
    with pytest.warns(IgnoredOptionWarning, match="groupIdPrefix is ignored"):
        read(groupIdPrefix="team")
