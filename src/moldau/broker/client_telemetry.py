"""What clients measure: who is asked for what, and what they have told (KIP-714)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from moldau._native.records import crc32c
from moldau.broker.calls import Call, Peer
from moldau.broker.otlp import Point
from moldau.kernel.uuid_text import uuid_to_text
from moldau.metadata.configs import Configs, ResourceType
from moldau.metadata.settings.kafka_resources import ClientMetricsSettings

INSTANCES_MAX: Final = 16_384
"""Beyond these the client that was silent longest is forgotten."""
SERIES_MAX: Final = 20_000
"""Over all clients; beyond these only what is kept already is renewed."""
LABEL_LENGTH_MAX: Final = 256
SILENCE_SECONDS_MIN: Final = 60.0
ALL_METRICS: Final = "*"

_INTERVAL_MS: Final = 300_000
_SIGN_BIT: Final = 1 << 31
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")

Labels = tuple[tuple[str, str], ...]


class TelemetrySubscription(NamedTuple):
    """What one client is asked for; its id changes when that does."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


class Sample(NamedTuple):
    """A value that a client has told, as Prometheus names it."""

    name: str
    labels: Labels
    value: float
    is_counter: bool


class _Series:
    __slots__ = ("is_counter", "value")

    def __init__(self, *, is_counter: bool) -> None:
        self.is_counter = is_counter
        self.value = 0.0


class Instance:
    """A client as it asked last; times are monotonic seconds."""

    __slots__ = (
        "_got",
        "_pushed",
        "expires",
        "is_terminating",
        "labels",
        "peer",
        "series",
        "subscription",
    )

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.series: dict[tuple[str, Labels], _Series] = {}
        self.expires = 0.0
        self.peer: Peer | None = None
        self.subscription: TelemetrySubscription | None = None

    def begin(self, peer: Peer, subscription: TelemetrySubscription, now: float) -> None:
        """Take a request. Another connection or subscription begins anew, as in Kafka."""
        if self.peer is not peer or self.subscription != subscription:
            self.peer = peer
            self.subscription = subscription
            self._got = self._pushed = float("-inf")
            self.is_terminating = False
        self.expires = now + max(SILENCE_SECONDS_MIN, 3 * subscription.interval_ms / 1000)

    def try_get(self, now: float) -> bool:
        """Note a question for the subscription, unless it comes too soon."""
        if now - max(self._got, self._pushed) < self._interval:
            return False
        self._got = now
        return True

    def may_push(self, now: float) -> bool:
        """Whether a push comes at its time: the first one after a question always does."""
        return self._got > self._pushed or now - self._pushed >= self._interval

    def pushed(self, now: float) -> None:
        """Note a push."""
        self._pushed = now

    @property
    def _interval(self) -> float:
        assert self.subscription is not None
        return self.subscription.interval_ms / 1000


class ClientTelemetry:
    """The clients that were heard of lately, and what they told; who was silent longest first."""

    def __init__(self) -> None:
        self._instances: dict[bytes, Instance] = {}
        self._series_count = 0

    def instance(self, instance_id: bytes, call: Call, configs: Configs) -> Instance:
        """Return the client that makes a call, with what it is asked for now."""
        now = call.received.monotonic
        self._forget_silent(now)
        attributes = _attributes(instance_id, call)
        instance = self._instances.pop(instance_id, None)
        if instance is None:
            names = ("client_id", "client_instance_id", "client_software_name")
            instance = Instance(tuple((name, attributes[name] or "") for name in names))
            if len(self._instances) >= INSTANCES_MAX:
                self._forget(next(iter(self._instances)))
        self._instances[instance_id] = instance
        instance.begin(call.peer, subscription_of(instance_id, attributes, configs), now)
        return instance

    def record(self, instance: Instance, points: Iterable[Point]) -> None:
        """Keep the values that a client has pushed."""
        for point in points:
            key = point.name, point.attributes
            series = instance.series.get(key)
            if series is None:
                texts = (point.name, *(text for pair in point.attributes for text in pair))
                if self._series_count >= SERIES_MAX or max(map(len, texts)) > LABEL_LENGTH_MAX:
                    continue
                series = instance.series[key] = _Series(is_counter=point.is_increase)
                self._series_count += 1
            series.value = point.value + (series.value if point.is_increase else 0)

    def samples(self, now: float) -> Iterator[Sample]:
        """Return what is known of clients that are not silent, for Prometheus."""
        self._forget_silent(now)
        for instance in self._instances.values():
            for (name, attributes), series in instance.series.items():
                shown = f"kafka_client_{_name(name.removeprefix('org.apache.kafka.'))}"
                if series.is_counter and not shown.endswith("_total"):
                    shown += "_total"
                labels = dict(instance.labels)
                for key, value in attributes:
                    labels.setdefault(_name(key), value)
                yield Sample(shown, tuple(labels.items()), series.value, series.is_counter)

    def _forget_silent(self, now: float) -> None:
        # Who asked first expires first, unless intervals differ: then a little later.
        while self._instances:
            instance_id, instance = next(iter(self._instances.items()))
            if instance.expires > now:
                return
            self._forget(instance_id)

    def _forget(self, instance_id: bytes) -> None:
        self._series_count -= len(self._instances.pop(instance_id).series)


def subscription_of(
    instance_id: bytes, attributes: Mapping[str, str | None], configs: Configs
) -> TelemetrySubscription:
    """Return what all subscriptions that match a client ask it for together."""
    metrics: set[str] = set()
    interval_ms = _INTERVAL_MS
    for resource in configs.resources():
        if resource.type == ResourceType.CLIENT_METRICS:
            settings = ClientMetricsSettings.parse(configs.of(resource))
            if _matches(settings.match, attributes):
                metrics.update(settings.metrics)
                interval_ms = min(interval_ms, settings.interval_ms)
    asked = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    crc = crc32c(f"{','.join(asked)} {interval_ms}".encode() + instance_id)
    return TelemetrySubscription(crc - 2 * (crc & _SIGN_BIT), asked, interval_ms)


def _matches(rules: Iterable[str], attributes: Mapping[str, str | None]) -> bool:
    for rule in rules:
        name, _, pattern = rule.partition("=")
        value = attributes.get(name)
        if value is None or not _fits(pattern, value):
            return False
    return True


def _fits(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:
        # Apache Kafka may have let it into the log: Java's patterns are not quite Python's.
        return False


def _attributes(instance_id: bytes, call: Call) -> dict[str, str | None]:
    peer = call.peer
    return {
        "client_id": call.client_id,
        "client_instance_id": uuid_to_text(instance_id),
        "client_software_name": peer.software_name,
        "client_software_version": peer.software_version,
        "client_source_address": peer.host,
        "client_source_port": str(peer.port),
    }


def _name(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text)
