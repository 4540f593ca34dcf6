"""Every setting is honoured or says why not, and docs/settings.md says the same."""

import re
from copy import copy
from pathlib import Path

import pytest

from moldau.metadata.settings import kafka_synonyms
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.combinations import bounds_of, group_problems
from moldau.metadata.settings.kafka_resources import (
    ClientMetricsSettings,
    GroupSettings,
    TopicSettings,
)
from moldau.metadata.settings.setting import Settings
from moldau.metadata.settings.support import TABLES, support_of
from tools.settings_page import PATH, SECTIONS, page


@pytest.mark.parametrize("group", TABLES)
def test_every_setting_has_a_verdict(group: type[Settings]) -> None:
    for name in group.declared:
        support = support_of(group, name)
        assert support.is_honoured or support.note, name


@pytest.mark.parametrize("group", TABLES)
def test_every_verdict_has_a_setting(group: type[Settings]) -> None:
    honoured, refused = TABLES[group]
    assert honoured.keys() <= group.declared.keys()
    for key in refused:
        assert any(
            name == key or (key.endswith("*") and name.startswith(key[:-1]))
            for name in group.declared
        ), key


def test_page_is_up_to_date() -> None:
    assert {group for _, group in SECTIONS} == set(TABLES)
    assert PATH.read_text() == page(), "run python -m tools.settings_page"


SOURCE = Path(__file__).parents[4] / "src" / "moldau"
# These modules turn settings into something that others use.
MEANINGS = ("broker.py", "combinations.py", "listeners.py")


def source() -> str:
    """Return all code that may act on a setting, and none that only declares or describes them."""
    settings = SOURCE / "metadata" / "settings"
    return "".join(
        path.read_text()
        for path in SOURCE.rglob("*.py")
        if path.parent != settings or path.name in MEANINGS
        if SOURCE / "client" not in path.parents  # clients have settings of the same names
    )


def is_read(name: str, code: str) -> bool:
    return re.search(rf"\.{name.replace('.', '_')}\b", code) is not None


BOUNDS = [
    (bound, name, step)
    for name in GroupSettings.declared
    for bound, step in zip(bounds_of(name), (-1, 1), strict=True)
    if bound in BrokerSettings.declared
]
"""Settings of a broker, those of groups that they bound, and where that is out of bounds."""


@pytest.mark.parametrize(("bound", "name", "step"), BOUNDS)
def test_a_bound_is_told_to_be_one(bound: str, name: str, step: int) -> None:
    limit = BrokerSettings.parse({}).values[bound]
    assert isinstance(limit, int)
    support = support_of(BrokerSettings, bound)
    assert support.is_honoured
    assert f"that a group's {name} may be set to" in support.note

    def problems(value: int) -> list[str]:
        group = copy(GroupSettings.parse({}))
        group.values = {**group.values, name: value}
        return list(group_problems(BrokerSettings.parse({}), group, [name]))

    assert problems(limit) == []
    assert bound in problems(limit + step)[0]


@pytest.mark.parametrize(
    "group", [BrokerSettings, TopicSettings, GroupSettings, ClientMetricsSettings]
)
def test_what_is_honoured_is_read(group: type[Settings]) -> None:
    code = source()
    # A broker's log.retention.ms is read as a topic's retention.ms; so are defaults for groups.
    inherited = {
        broker_name
        for name, synonyms in (kafka_synonyms.TOPIC | kafka_synonyms.GROUP).items()
        if is_read(name, code)
        for broker_name, _ in synonyms
    }
    indirect = inherited | {bound for bound, _, _ in BOUNDS}
    unread = [
        name
        for name in TABLES[group][0]
        if not is_read(name, code) and not (group is BrokerSettings and name in indirect)
    ]
    assert unread == []


def test_what_is_read_is_honoured() -> None:
    code = source()
    broker_settings = re.compile(r"settings\.([a-z_]+)\b")
    read = {match.replace("_", ".") for match in broker_settings.findall(code)}
    for name in sorted(read & BrokerSettings.declared.keys() - MENTIONED):
        assert support_of(BrokerSettings, name).is_honoured, name


MENTIONED = {"authorizer.class.name", "controller.quorum.voters"}
"""Looked at only to refuse what would be misunderstood."""
