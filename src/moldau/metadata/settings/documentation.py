"""A few words about each setting, for clients that ask for documentation."""

from moldau.metadata.settings.broker import BrokerSettings, find_broker_setting
from moldau.metadata.settings.kafka_resources import BrokerQuotaSettings
from moldau.metadata.settings.setting import Settings
from moldau.metadata.settings.support import support_of


def documentation_of(group: type[Settings], name: str) -> str | None:
    """Say what a setting may be, and what it does here; None for what we do not know."""
    setting = find_broker_setting(name) if group is BrokerSettings else group.declared.get(name)
    if setting is None:
        return None
    kind = setting.kind.name.lower()
    parts = [
        f"A value of type {kind}{', ' if setting.allowed.words else ''}{setting.allowed.words}."
    ]
    default = setting.default_text
    if default is not None and not setting.is_sensitive:
        parts.append(f"Without it: {default or 'empty'}.")
    if setting.name in BrokerQuotaSettings.declared:
        group = BrokerQuotaSettings
    support = support_of(group, setting.name)
    if not support.is_honoured:
        parts.append(f"It has no effect: {support.note}.")
    elif support.note:
        parts.append(f"{support.note[0].upper()}{support.note[1:]}.")
    return " ".join(parts)
