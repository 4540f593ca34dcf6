"""A reader's and writer's options: case does not matter, and every name is known to somebody."""

import pytest

from moldau.pipelines.connector.options import IgnoredOptionWarning, Options
from moldau.pipelines.errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_names_have_no_case_and_values_have_types() -> None:
    options = Options({"maxoffsetspertrigger": "5", "failondataloss": "False", "Mode": "APPEND"})
    assert options.number("maxOffsetsPerTrigger") == 5
    assert options.number("minPartitions") is None
    assert not options.flag("failOnDataLoss", default=True)
    assert options.flag("includeHeaders", default=True)
    assert options.choice("mode", ["append", "complete"], "complete") == "append"
    assert "mode" in options
    assert options.text("other", "this") == "this"


@pytest.mark.parametrize(
    ("text", "words"),
    [("0", "from 1 on"), ("many", "from 1 on"), ("-1", "from 1 on")],
)
def test_a_number_out_of_range_names_the_option(text: str, words: str) -> None:
    with pytest.raises(OptionError, match=f"option minPartitions={text}: .*{words}"):
        Options({"minpartitions": text}).number("minPartitions")


def test_bad_words_name_what_is_allowed() -> None:
    with pytest.raises(OptionError, match="failOnDataLoss=maybe: true or false"):
        Options({"failondataloss": "maybe"}).flag("failOnDataLoss", default=True)
    options = Options({"delivery": "twice"})
    with pytest.raises(OptionError, match="delivery=twice: exactly_once or at_least_once"):
        options.choice("delivery", ["exactly_once", "at_least_once"], "exactly_once")


def test_what_is_missing_is_named_as_users_write_it() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing: add \.option"):
        Options({}).client_config()


def test_what_nobody_asks_for_is_refused_with_the_nearest_name() -> None:
    options = Options({"maxOffsetPerTrigger": "5", "checkpointlocation": "x", **SERVERS})
    options.number("maxOffsetsPerTrigger")
    with pytest.raises(
        OptionError, match=r"maxoffsetpertrigger: did you mean maxOffsetsPerTrigger"
    ):
        options.check_unknown("checkpointLocation")


def test_the_clients_settings_are_those_with_kafkas_prefix() -> None:
    options = Options({**SERVERS, "kafka.fetch.max.bytes": "5", "subscribe": "a"})
    assert options.client_config() == {
        "bootstrap.servers": "localhost:9092",
        "fetch.max.bytes": "5",
    }


def test_javas_classes_are_left_out_with_a_warning() -> None:
    options = Options({**SERVERS, "kafka.key.deserializer": "org.example.Deserializer"})
    with pytest.warns(IgnoredOptionWarning, match="kafka.key.deserializer"):
        assert options.client_config() == {"bootstrap.servers": "localhost:9092"}


def test_what_the_connector_decides_on_is_refused() -> None:
    options = Options({**SERVERS, "kafka.enable.auto.commit": "true"})
    with pytest.raises(OptionError, match=r"kafka\.enable\.auto\.commit: the connector decides"):
        options.client_config("enable.auto.commit")
