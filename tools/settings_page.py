"""Write docs/settings.md, the table of all settings, from their declarations.

python -m tools.settings_page [--check]
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from moldau.metadata.settings.broker import BrokerSettings, OwnSettings
from moldau.metadata.settings.kafka_resources import (
    BrokerQuotaSettings,
    ClientMetricsSettings,
    ClientQuotaSettings,
    GroupSettings,
    IpQuotaSettings,
    TopicSettings,
)
from moldau.metadata.settings.kinds import SettingValue, render
from moldau.metadata.settings.setting import Required, Setting, Settings
from moldau.metadata.settings.support import support_of

PATH = Path("docs/settings.md")

HEAD = """\
# Settings

Every setting of a Kafka 4.3.1 broker, topic, group and client, and ours; what 4.4 added is not
here yet. A setting is honoured, or it is listed with the reason why not; one that is not honoured
is named in a warning when a file or `--set` gives it another value than its default. Names that
nobody knows are warnings, values that are not allowed are errors, with file and line.

`server.properties` is read as Kafka reads it, and `--set name=value` wins over it. Settings that
can be changed while a broker runs say so: `per-broker`, or `cluster-wide` for all brokers at once.
Those of topics and groups always can.

Our defaults differ where Kafka has none or where one machine needs another: see `listeners`,
`log.dir`, `node.id`, `process.roles`, `controller.listener.names`. The replication factor and the
minimum of in-sync replicas of internal topics are capped by the brokers that there are when the
topic is created.

This page is written by `python -m tools.settings_page`.
"""

SECTIONS: tuple[tuple[str, type[Settings]], ...] = (
    ("Brokers", BrokerSettings),
    ("Topics", TopicSettings),
    ("Groups", GroupSettings),
    ("Subscriptions to clients' metrics", ClientMetricsSettings),
    ("Quotas of brokers", BrokerQuotaSettings),
    ("Quotas of users and clients", ClientQuotaSettings),
    ("Quotas of addresses", IpQuotaSettings),
)


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    yield "\n## Ours\n\n"
    yield from _table(BrokerSettings, list(OwnSettings.declared))
    for title, group in SECTIONS:
        names = [name for name in group.declared if name not in OwnSettings.declared]
        for words, is_honoured in (("honoured", True), ("not honoured", False)):
            chosen = [n for n in names if support_of(group, n).is_honoured is is_honoured]
            if chosen:
                yield f"\n## {title}: {words} ({len(chosen)})\n\n"
                yield from _table(group, chosen)


def _table(group: type[Settings], names: list[str]) -> Iterator[str]:
    yield "| name | type | default | allowed | update | importance | note |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for name in names:
        setting = group.declared[name]
        cells = (
            f"`{name}`{' (internal)' if setting.internal else ''}",
            setting.kind.name.lower(),
            _default(setting),
            setting.allowed.words,
            setting.update.value if group is BrokerSettings else "any time",
            setting.importance.value,
            support_of(group, name).note,
        )
        yield "| " + " | ".join(cells) + " |\n"


def _default(setting: Setting[SettingValue]) -> str:
    if isinstance(setting.default, Required):
        return "required"
    text = render(setting.default)
    return "none" if text is None else f"`{text}`" if text else "empty"


def main() -> int:
    """Write or check the page; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    is_stale = not PATH.exists() or PATH.read_text() != page()
    if parser.parse_args().check:
        return int(is_stale)
    PATH.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
