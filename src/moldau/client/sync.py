"""What the synchronous clients share: each holds an asynchronous one and waits for it."""

import weakref
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from moldau.client.background import BackgroundLoop


class Client(Protocol):
    """What every asynchronous client has."""

    async def start(self) -> None:
        """Find the cluster."""

    async def close(self) -> None:
        """Hang up."""


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
AnyClient = TypeVar("AnyClient", bound=Client)
# Whoever has a larger client has its parts' methods, too.
HeldClient_co = TypeVar("HeldClient_co", bound=Client, covariant=True)


class Synchronous(Generic[HeldClient_co]):
    """A client that waits: it is started when it is made, and `with` closes it."""

    def __init__(self, client: HeldClient_co) -> None:
        self._client = client
        self._background = BackgroundLoop.shared()
        self._background.run(client.start())
        # Who forgets to close does not keep connections open.
        self._forgotten = weakref.finalize(self, _close_soon, self._background, client)
        self._forgotten.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up everywhere; what was begun is given up or finished, as the client says."""
        if self._forgotten.detach():
            self._run(self._client.close())

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._background.run(work)


def _close_soon(background: BackgroundLoop, client: Client) -> None:
    background.start(client.close())


def waiting(
    method: Callable[Concatenate[AnyClient, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Synchronous[AnyClient], Parameters], Result]:
    """Return the method of a synchronous client that waits for an asynchronous client's."""

    @wraps(method)
    def wait(
        self: Synchronous[AnyClient], /, *args: Parameters.args, **keywords: Parameters.kwargs
    ) -> Result:
        return self._run(method(self._client, *args, **keywords))

    return wait


def doing(
    method: Callable[Concatenate[AnyClient, Parameters], Result],
) -> Callable[Concatenate[Synchronous[AnyClient], Parameters], Result]:
    """Return the method of a synchronous client that has something done in the loop's thread."""

    @wraps(method)
    def do(
        self: Synchronous[AnyClient], /, *args: Parameters.args, **keywords: Parameters.kwargs
    ) -> Result:
        async def run() -> Result:
            return method(self._client, *args, **keywords)

        return self._run(run())

    return do
