"""Asks a broker, writes its answers down, and gives what is drawn by lot a name."""

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import api_of
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse
from moldau.protocol.schema import Message, Struct
from tests.conformance.brokers import RunningBroker
from tests.wire import Wire, wait_for

# Words, places and times: only whether they are there is compared.
NATURE: Final = {
    "client_host",
    "host",
    "last_timestamp",
    "log_append_time_ms",
    "port",
    "rack",
    "transaction_start_time_ms",
}
# Kafka says many of these with null, an empty text or a text where we say another of the three.
IGNORED: Final = {"acknowledge_error_message", "error_message"}
# Ids that a broker draws by lot. Every other one of the same kind must be another id.
DRAWN: Final = {"member_id": "member", "leader": "member", "producer_id": "producer"}
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![\w-])[\w-]{22}(?![\w-])")

Versions = Mapping[int, tuple[int, int]]
"""By API key, the first and the last version that are asked."""

COORDINATOR_IS_COMING: Final = {14, 15, 16}
CONCURRENT_TRANSACTIONS: Final = 51


class Questioner:
    """Asks one request after another, in the versions that the reference serves."""

    def __init__(self, broker: RunningBroker, versions: Versions) -> None:
        self.broker = broker
        self.versions = versions
        self.wire = self.connect()
        self.answers: dict[str, Any] = {}
        """What was answered, as it is compared, by the question's name."""
        self.topics: dict[str, bytes] = {}
        """The ids of the topics that were created."""
        self._names: dict[tuple[str, Any], str] = {}
        self._shown: dict[Any, str] = {}
        self._wires = [self.wire]

    def connect(self) -> Wire:
        """Open a connection; it is closed with the others."""
        wire = Wire(self.broker.host, self.broker.port)
        if hasattr(self, "_wires"):
            self._wires.append(wire)
        return wire

    def close(self) -> None:
        """End all connections."""
        for wire in self._wires:
            wire.close()

    def last(self, request: type[Message]) -> int:
        """Return the newest version of a request that is asked."""
        return self.versions[request._api_key][1]

    def all_versions(self, request: type[Message], first: int = 0) -> range:
        """Return the versions of a request that are asked, from `first` on."""
        least, last = self.versions[request._api_key]
        return range(max(least, first), last + 1)

    def call(self, request: Message, version: int | None = None, wire: Wire | None = None) -> Any:
        """Ask what nobody compares."""
        version = self.last(type(request)) if version is None else version
        return (wire or self.wire).call(request, api_of(type(request)).response_class, version)

    def ask(
        self, name: str, request: Message, version: int | None = None, wire: Wire | None = None
    ) -> Any:
        """Ask in one version, the newest unless told, and write the answer down."""
        version = self.last(type(request)) if version is None else version
        answer = self.call(request, version, wire)
        self.note(name, answer, version)
        return answer

    def ask_all(self, name: str, request: Message) -> None:
        """Ask in all versions that can say it: for questions that change nothing."""
        for version in self.all_versions(type(request)):
            try:
                request.encode(version)
            except ProtocolError:
                continue
            self.ask(name, request, version)

    def note(self, name: str, answer: Message, version: int) -> None:
        """Write an answer down, with a number where the same was asked before."""
        label = f"{type(answer).__name__} v{version}: {name}"
        number = next(n for n in count(1) if f"{label} #{n}" not in self.answers)
        self.answers[f"{label} #{number}"] = self.show(answer)

    def ask_until(
        self,
        name: str,
        request: Message,
        is_done: Callable[[Any], bool],
        version: int | None = None,
    ) -> Any:
        """Ask until the answer is as it should be, and write only that one down."""
        version = self.last(type(request)) if version is None else version
        answer: Any = None

        def ask() -> bool:
            nonlocal answer
            answer = self.call(request, version)
            return is_done(answer)

        wait_for(ask)
        self.note(name, answer, version)
        return answer

    def learn_topics(self) -> None:
        """Ask for the topics' ids, which are shown by the topics' names."""
        answer = self.call(MetadataRequest(topics=None), 12)
        assert isinstance(answer, MetadataResponse)
        self.topics |= {topic.name: topic.topic_id for topic in answer.topics}
        self._shown |= {topic_id: f"id of {name}" for name, topic_id in self.topics.items()}

    def show(self, value: Any) -> Any:
        """Return an answer as it is compared; the order of lists means nothing."""
        if isinstance(value, Struct):
            return {
                field.name: self._show_field(field.name, getattr(value, field.name))
                for field in value._fields
                if field.name not in IGNORED
            }
        if isinstance(value, tuple | list):
            return sorted((self.show(item) for item in value), key=repr)
        if isinstance(value, bytes | memoryview):
            return self._shown.get(bytes(value), bytes(value))
        return value

    def _show_field(self, name: str, value: Any) -> Any:
        if name in NATURE:
            return value not in (None, "", -1, 0)
        if name == "records":
            return bool(value)
        kind = DRAWN.get(name)
        if kind is None or value in (None, "", -1):
            return self.show(value)
        if (kind, value) not in self._names:
            shape = UUID.sub("<uuid>", value) if isinstance(value, str) else "<id>"
            self._names[kind, value] = f"{kind} {len(self._names)}: {shape}"
        return self._names[kind, value]


def served_versions(wire: Wire) -> Versions:
    """Ask a broker which versions it serves."""
    answer = wire.call(
        ApiVersionsRequest(client_software_name="test", client_software_version="1"),
        ApiVersionsResponse,
        3,
    )
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
