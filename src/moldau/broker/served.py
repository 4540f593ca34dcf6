"""The APIs that a broker serves: nothing else is advertised, and nothing else is answered."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from moldau.protocol.apis import APIS, Api

Handler = Callable[..., Any]
"""`(broker, call, request) -> response | None`; Produce gets a buffer and a frame instead."""

# One line for each: `handlers/<name>.py` has `handle_<name>`.
_HANDLERS: Final = ("api_versions",)


class Served:
    """One API that is served, in all its declared stable versions."""

    __slots__ = ("_handler", "api", "first", "last")

    def __init__(self, api: Api, handler: Handler | None = None) -> None:
        self.api = api
        self.first = api.first
        self.last = api.last_stable
        self._handler = handler

    @property
    def handler(self) -> Handler:
        """The function that handles its requests, by default imported when it is first needed."""
        if self._handler is None:
            name = self.api.module
            module = import_module(f"moldau.broker.handlers.{name}")
            self._handler = getattr(module, f"handle_{name}")
        return self._handler


HANDLERS: Final[Mapping[int, Served]] = {
    api.key: Served(api) for api in APIS if api.module in _HANDLERS
}
"""By API key, in order."""
