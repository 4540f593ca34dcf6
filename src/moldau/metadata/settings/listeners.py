"""Listeners: which addresses a broker opens, and which it tells others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.setting import SettingError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SPOKEN: Final = ("PLAINTEXT",)
"""The protocols that a listener can have here today."""

CONTROLLER_PORT: Final = 9093
"""Kafka's usual port of controllers, for quorums whose only voter has no such listener."""

_LISTENER: Final = re.compile(
    r"(?P<name>[^:/]+)://(?:\[(?P<ipv6>[0-9a-fA-F:.%]+)\]|(?P<host>[0-9a-zA-Z\-._]*))"
    r":(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True, slots=True)
class ListenerSetting:
    """An address to open or to tell; an empty host opens all of the machine's addresses."""

    name: str
    host: str
    port: int
    protocol: str


def listeners_of(settings: BrokerSettings) -> tuple[ListenerSetting, ...]:
    """Return the listeners that clients and brokers use; those of controllers are left out."""
    return _serving(_parse("listeners", settings.listeners, settings), settings)


def advertised_listeners_of(settings: BrokerSettings) -> tuple[ListenerSetting, ...] | None:
    """Return what clients are told to connect to; None says: where they reached us."""
    if settings.advertised_listeners is None:
        return None
    return _serving(_parse_advertised(settings), settings)


def controller_listener_of(settings: BrokerSettings) -> ListenerSetting:
    """Return where this node is reached as a controller; nobody asks while it is alone."""
    names = _controller_names(settings)
    for listener in _parse("listeners", settings.listeners, settings):
        if listener.name in names:
            return listener
    return ListenerSetting(names[0], "localhost", CONTROLLER_PORT, "PLAINTEXT")


def check_listeners(settings: BrokerSettings) -> None:
    """Raise `SettingError` if the settings that speak of listeners contradict each other."""
    opened = _parse("listeners", settings.listeners, settings)
    _check_ports(opened)
    _check_advertised(_parse_advertised(settings), [listener.name for listener in opened])
    told = advertised_listeners_of(settings)
    names = [listener.name for listener in (listeners_of(settings) if told is None else told)]
    if not names:
        raise SettingError(
            f"{'listeners' if told is None else 'advertised.listeners'}: all of them are in"
            " controller.listener.names; a broker needs another"
        )
    inter_broker = settings.inter_broker_listener_name
    if inter_broker is not None and inter_broker.upper() not in names:
        raise SettingError(
            f"inter.broker.listener.name: {inter_broker!r} is not a listener that is advertised;"
            f" there are {', '.join(names)}"
        )


def _serving(
    listeners: Sequence[ListenerSetting], settings: BrokerSettings
) -> tuple[ListenerSetting, ...]:
    controllers = _controller_names(settings)
    return tuple(listener for listener in listeners if listener.name not in controllers)


def _parse_advertised(settings: BrokerSettings) -> tuple[ListenerSetting, ...]:
    return _parse("advertised.listeners", settings.advertised_listeners or (), settings)


def _check_advertised(advertised: Sequence[ListenerSetting], opened: Sequence[str]) -> None:
    for listener in advertised:
        if listener.name not in opened:
            raise SettingError(
                f"advertised.listeners: {listener.name} is not in listeners;"
                f" there are {', '.join(opened)}"
            )
        if listener.host in {"", "0.0.0.0", "::"}:
            raise SettingError(
                f"advertised.listeners: {listener.name} has no address that a client can use;"
                " name a host, or leave the setting out"
            )


def _check_ports(opened: Sequence[ListenerSetting]) -> None:
    for number, listener in enumerate(opened):
        for other in opened[:number]:
            if listener.port and listener.port == other.port and _is_clash(listener, other):
                raise SettingError(
                    f"listeners: {other.name} and {listener.name} have the same port"
                    f" {listener.port}; only an IPv4 and an IPv6 address can share one"
                )


def _is_clash(one: ListenerSetting, other: ListenerSetting) -> bool:
    families = {_family(one.host), _family(other.host)}
    return families != {4, 6}


def _family(host: str) -> int | None:
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", host) else None


def _parse(
    name: str, texts: Sequence[str], settings: BrokerSettings
) -> tuple[ListenerSetting, ...]:
    protocols = _protocols(settings)
    found: dict[str, ListenerSetting] = {}
    for text in texts:
        match = _LISTENER.fullmatch(text)
        if match is None or int(match["port"]) >= 1 << 16:
            raise SettingError(
                f"{name}: {text!r} is not a listener; write NAME://host:port,"
                " such as PLAINTEXT://localhost:9092"
            )
        listener = match["name"].upper()
        if listener in found:
            raise SettingError(f"{name}: {listener} is there twice")
        protocol = protocols.get(listener)
        if protocol is None:
            raise SettingError(
                f"{name}: {listener} has no protocol; name it in listener.security.protocol.map"
            )
        if protocol not in SPOKEN:
            raise SettingError(
                f"{name}: {listener} needs {protocol}; only {', '.join(SPOKEN)} is there yet"
            )
        host = match["ipv6"] or match["host"]
        found[listener] = ListenerSetting(listener, host, int(match["port"]), protocol)
    return tuple(found.values())


def _protocols(settings: BrokerSettings) -> Mapping[str, str]:
    """Return each listener's protocol; controllers' speak PLAINTEXT when nobody says otherwise."""
    setting = BrokerSettings.listener_security_protocol_map
    text = settings.listener_security_protocol_map
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        listener, _, protocol = (part.strip().upper() for part in pair.partition(":"))
        if protocol not in PROTOCOLS:
            raise SettingError(
                f"{setting.name}: {pair!r} is not NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}"
            )
        protocols[listener] = protocol
    if text == setting.default:
        for name in _controller_names(settings):
            protocols.setdefault(name, "PLAINTEXT")
    return protocols


def _controller_names(settings: BrokerSettings) -> Sequence[str]:
    return [name.upper() for name in settings.controller_listener_names]
