"""Declarations, values, and the lines that refuse a value."""

import pytest

from moldau.metadata.settings.allowed import at_least, between, items, one_of
from moldau.metadata.settings.broker import (
    BrokerSettings,
    OwnSettings,
    base_name,
    find_broker_setting,
)
from moldau.metadata.settings.declare import Int, Secret, Text, Texts
from moldau.metadata.settings.kafka_broker import KafkaBroker
from moldau.metadata.settings.kafka_coordinators import KafkaCoordinators
from moldau.metadata.settings.kafka_resources import (
    GroupSettings,
    IpQuotaSettings,
    TopicSettings,
)
from moldau.metadata.settings.kafka_security import KafkaSecurity
from moldau.metadata.settings.setting import REQUIRED, SettingError, Settings


class Sample(Settings):
    """A few settings."""

    cook_count = Int(2, at_least(1))
    cook_key: Secret = Secret(None)
    dish_names = Texts(("soup",), items("soup", "fish"))
    dish_sauce = Text(None, one_of("red", "green"))
    oven_degrees = Int(180, between(0, 250))


class Stricter(Sample):
    """The same with another default, and one that has none."""

    cook_count = Int(3, at_least(1))
    oven_id: Int[int] = Int(REQUIRED)


def test_values_and_defaults() -> None:
    sample = Sample.parse({"cook.count": " 4 ", "unknown": "x"})
    assert sample.cook_count == 4
    assert sample.dish_names == ("soup",)
    assert sample.dish_sauce is None
    assert sample.values["oven.degrees"] == 180
    assert Sample.cook_count.name == "cook.count"


def test_what_is_given_is_known_even_if_it_is_the_default() -> None:
    assert Sample.parse({"cook.count": "2", "unknown": "x"}).given == {"cook.count"}


def test_a_value_that_was_read_belongs_to_its_instance() -> None:
    first, second = Sample({"cook.count": 4}), Sample({"cook.count": 5})
    for _ in range(2):
        assert (first.cook_count, second.cook_count) == (4, 5)
    assert Sample.cook_count.default == 2


def test_nearest_declaration_wins() -> None:
    assert Stricter({"oven.id": 1}).cook_count == 3
    assert Sample({}).cook_count == 2


def test_required_setting_is_named() -> None:
    with pytest.raises(SettingError, match=r"^oven\.id: it has no default, and must be set$"):
        Stricter.parse({})


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("cook.count", "0", "cook.count: '0' is not allowed; it must be at least 1"),
        ("cook.count", "x", "cook.count: 'x' is not allowed; it must be a whole number of 32 bits"),
        ("oven.degrees", "251", "oven.degrees: '251' is not allowed; it must be between 0 and 250"),
        (
            "dish.names",
            "soup,pie",
            "dish.names: 'soup,pie' is not allowed; it must be a list of soup, fish, not empty",
        ),
        (
            "dish.names",
            "",
            "dish.names: '' is not allowed; it must be a list of soup, fish, not empty",
        ),
        ("dish.sauce", "blue", "dish.sauce: 'blue' is not allowed; it must be one of red, green"),
    ],
)
def test_refusal_names_setting_value_and_what_is_allowed(name: str, text: str, line: str) -> None:
    with pytest.raises(SettingError) as refused:
        Sample.parse({name: text})
    assert str(refused.value) == line


def test_what_is_listed_twice_counts_once() -> None:
    assert Sample.parse({"dish.names": "fish,soup,fish"}).dish_names == ("fish", "soup")


def test_secrets_do_not_show() -> None:
    assert "hunter2" not in repr(Sample.parse({"cook.key": "hunter2", "cook.count": "9"}))


def test_our_names_are_not_kafkas() -> None:
    kafka = {*KafkaBroker.declared, *KafkaSecurity.declared, *KafkaCoordinators.declared}
    assert not OwnSettings.declared.keys() & kafka
    bare = [name for name in OwnSettings.declared if not name.startswith("moldau.")]
    assert bare == ["durability", "metadata.version"]


@pytest.mark.parametrize("group", [BrokerSettings, TopicSettings, GroupSettings, IpQuotaSettings])
def test_every_default_is_allowed(group: type[Settings]) -> None:
    for setting in group.declared.values():
        if setting.default_text is not None and setting.name not in {"broker.id"}:
            assert setting.parse(setting.default_text) == setting.default


def test_broker_starts_from_nothing() -> None:
    settings = BrokerSettings({})
    assert settings.node_id == 1
    assert settings.log_directories == ("data",)
    assert settings.metadata_log_directory == "data"
    assert BrokerSettings({"log.dirs": ("a", "b")}).log_directories == ("a", "b")
    assert settings.durability == "fsync"


def test_setting_of_one_listener() -> None:
    assert base_name("listener.name.internal.ssl.protocol") == "ssl.protocol"
    assert base_name("listener.name.a.scram-sha-256.sasl.jaas.config") == "sasl.jaas.config"
    found = find_broker_setting("listener.name.internal.ssl.key.password")
    assert found is not None
    assert found.is_sensitive
    assert find_broker_setting("listener.name.internal.nothing") is None
    assert find_broker_setting("leader.replication.throttled.rate") is not None
