"""The index of APIs: key, name, versions, and the message classes, loaded on first use.

It knows what can be encoded and decoded. What a broker serves and advertises is its own matter.
"""

from importlib import import_module
from typing import Final

from moldau.kernel.errors import ProtocolError
from moldau.protocol.api_table import ROWS
from moldau.protocol.schema import Message

API_VERSIONS = 18


class UnknownApiError(ProtocolError):
    """No API has this key."""


class Api:
    """One API: the facts that are needed before its messages are."""

    __slots__ = (
        "_request",
        "_response",
        "first",
        "flexible",
        "key",
        "last",
        "last_stable",
        "listeners",
        "module",
        "name",
    )

    def __init__(
        self,
        key: int,
        name: str,
        module: str,
        first: int,
        last: int,
        last_stable: int,
        flexible: int,
        listeners: tuple[str, ...],
    ) -> None:
        self.key = key
        self.name = name
        self.module = module
        self.first = first
        self.last = last
        self.last_stable = last_stable
        self.flexible = flexible
        self.listeners = listeners
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}, API key {self.key}, v{self.first}-v{self.last}>"

    @property
    def request_class(self) -> type[Message]:
        """The class of its requests."""
        if self._request is None:
            self._request = self._load("Request")
        return self._request

    @property
    def response_class(self) -> type[Message]:
        """The class of its responses."""
        if self._response is None:
            self._response = self._load("Response")
        return self._response

    def has_version(self, version: int) -> bool:
        """Whether the version is declared, stable or not."""
        return self.first <= version <= self.last

    def request_header_version(self, version: int) -> int:
        """The version of the header in front of a request; defined for undeclared ones too."""
        return 2 if version >= self.flexible else 1

    def response_header_version(self, version: int) -> int:
        """The version of the header in front of a response."""
        # A client learns from ApiVersions which versions there are, so it reads that one response
        # without knowing the broker's (KIP-511).
        return 1 if version >= self.flexible and self.key != API_VERSIONS else 0

    def _load(self, kind: str) -> type[Message]:
        module = import_module(f"moldau.protocol.messages.{self.module}")
        loaded: type[Message] = getattr(module, self.name + kind)
        return loaded


APIS: Final = tuple(Api(*row) for row in ROWS)
"""In the order of their keys."""

_BY_KEY = {each.key: each for each in APIS}
_BY_CLASS = {each.name + kind: each for each in APIS for kind in ("Request", "Response")}


def api(key: int) -> Api:
    """Return the API with this key; `UnknownApiError` if there is none."""
    try:
        return _BY_KEY[key]
    except KeyError:
        raise UnknownApiError(f"no API has key {key}") from None


def api_of(message: type[Message]) -> Api:
    """Return the API that a request or response class belongs to."""
    try:
        return _BY_CLASS[message.__name__]
    except KeyError:
        raise TypeError(f"{message.__name__} is neither a request nor a response") from None
