"""A broker's settings from its file and its command line, with all that is wrong about them."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.metadata.settings.broker import BrokerSettings, base_name, find_broker_setting
from moldau.metadata.settings.combinations import broker_problems
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.metadata.settings.properties import PropertiesError, parse_properties
from moldau.metadata.settings.setting import SettingError
from moldau.metadata.settings.support import support_of

REMOVED: Final = (
    "auto.include.jmx.reporter",
    "broker.id.generation.enable",
    "control.plane.listener.name",
    "delegation.token.master.key",
    "inter.broker.protocol.version",
    "leader.imbalance.per.broker.percentage",
    "log.message.downconversion.enable",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
    "offsets.commit.required.acks",
    "password.encoder.",
    "reserved.broker.max.id",
    "zookeeper.",
)
"""Names, and beginnings of names, that Kafka had before version 4."""


@dataclass(frozen=True, slots=True)
class Given:
    """A text given to a setting, and where: a file's line, or the command line."""

    name: str
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What was read. `settings` is None if there are errors; all lines are for a person."""

    static: dict[str, str]
    settings: BrokerSettings | None
    warnings: tuple[str, ...]
    errors: tuple[str, ...]


def load_broker_settings(
    properties: str = "",
    *,
    file: str = "server.properties",
    assignments: Sequence[str] = (),
) -> LoadedSettings:
    """Read the text of a properties file, and `name=value` assignments, which win over it."""
    given: dict[str, Given] = {}
    errors: list[str] = []
    for source in (_from_file(properties, file), _from_assignments(assignments)):
        try:
            for item in source:
                given[item.name] = item
        except (PropertiesError, SettingError) as error:
            errors.append(str(error))
    warnings = list[str]()
    for item in given.values():
        warnings += _warnings(item)
        errors += _errors(item)
    static = {item.name: item.text for item in given.values()}
    if errors:
        return LoadedSettings(static, None, tuple(warnings), tuple(errors))
    settings = broker_settings(BrokerLayers(static))
    errors += broker_problems(settings)
    return LoadedSettings(static, None if errors else settings, tuple(warnings), tuple(errors))


def _from_file(properties: str, file: str) -> Iterator[Given]:
    try:
        for item in parse_properties(properties):
            yield Given(item.key, item.value, f"{file}:{item.line}")
    except PropertiesError as error:
        raise PropertiesError(f"{file}: {error}") from None


def _from_assignments(assignments: Iterable[str]) -> Iterator[Given]:
    for assignment in assignments:
        name, sign, text = assignment.partition("=")
        if not sign or not name.strip():
            raise SettingError(f"--set {assignment}: write name=value")
        yield Given(name.strip(), text, "--set")


def _errors(item: Given) -> Iterator[str]:
    setting = find_broker_setting(item.name)
    if setting is not None:
        try:
            setting.parse(item.text)
        except SettingError as error:
            yield f"{item.place}: {error}"


def _warnings(item: Given) -> Iterator[str]:
    base = base_name(item.name)
    setting = BrokerSettings.declared.get(base)
    if setting is None:
        yield f"{item.place}: {item.name} {_unknown(item.name)}"
        return
    support = support_of(BrokerSettings, base)
    is_default = item.text.strip() == setting.default_text
    if not support.is_honoured and not is_default:
        yield f"{item.place}: {item.name} has no effect: {support.note}"
    elif base != item.name:
        reason = "listeners have no settings of their own yet"
        yield f"{item.place}: {item.name} has no effect: {reason}"


def _unknown(name: str) -> str:
    if name.startswith(REMOVED):
        return "has no effect: Kafka 4 removed it"
    close = difflib.get_close_matches(name, BrokerSettings.declared, n=1)
    return f"is not a setting{f'; did you mean {close[0]}?' if close else ''}"
