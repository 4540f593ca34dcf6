"""What a process keeps for its next task: connections, metadata, and what it has read with them.

Spark's workers are processes that do one task after the other, and the driver asks one for each
end of a batch. They are forked from daemons, so what is kept is kept by the process' id: a socket
that two processes read would give each of them the other's answers. Workers that Spark does not use
again take nothing to the next task, and everything is as it would be with new clients.
"""

import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from moldau.client.admin import Admin
from moldau.client.background import BackgroundLoop
from moldau.client.producer import Producer
from moldau.client.settings import ClientSettings, load
from moldau.client.shared_cluster import SharedCluster
from moldau.client.sync_consumer import Consumer
from moldau.pipelines.connector.opening import open_client
from moldau.pipelines.connector.worker_memory import settle

KEPT_MAX: Final = 8
"""Of clusters or settings, or of threads that use the same ones at once."""

Kept = TypeVar("Kept")
Result = TypeVar("Result")
_Key = tuple[int, frozenset[tuple[str, str]]]


class KeptClients:
    """Clients over the same connections to one cluster; one task has all of them at a time."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._background = BackgroundLoop.shared()
        self.cluster = SharedCluster(load(ClientSettings, None, config, {}))
        self._kept: dict[object, object] = {}
        try:
            self.admin = open_client(Admin, cluster=self.cluster)
        except BaseException:
            self.close()
            raise

    def keep(self, name: object, make: Callable[[], Kept]) -> Kept:
        """Return what was made under a name, by an earlier task or now."""
        if name not in self._kept:
            self._kept[name] = make()
        return cast("Kept", self._kept[name])

    def consumer(self, config: Mapping[str, str]) -> Consumer:
        """Return a consumer with these settings; it is left with nothing on its way."""
        name = Consumer, frozenset(config.items())
        return self.keep(name, lambda: Consumer(config=config, cluster=self.cluster))

    def producer(self, config: Mapping[str, object], **settings: object) -> Producer:
        """Return a new producer, which must be closed: one that writes is never kept."""
        return Producer(None, config=config, cluster=self.cluster, **settings)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have something done in the clients' loop."""
        return self._background.run(work)

    def close(self) -> None:
        """Hang up."""
        for each in self._kept.values():
            if isinstance(each, Consumer):
                each.close()
        self._background.loop.call_soon_threadsafe(self.cluster.hang_up)


_lock = threading.Lock()
_idle: list[tuple[_Key, KeptClients]] = []
"""Those that no task has at the moment, the last used at the end; a forked process has them too,
under its parent's id, and leaves them alone."""


@contextmanager
def kept_clients(config: Mapping[str, str]) -> Iterator[KeptClients]:
    """Lend what this process has for these settings; after an error it is dropped."""
    key = os.getpid(), frozenset(config.items())
    clients = _take(key) or KeptClients(config)
    try:
        yield clients
    except BaseException:
        clients.close()
        raise
    _give_back(key, clients)
    settle()


def _take(key: _Key) -> KeptClients | None:
    with _lock:
        for index in reversed(range(len(_idle))):
            if _idle[index][0] == key:
                return _idle.pop(index)[1]
    return None


def _give_back(key: _Key, clients: KeptClients) -> None:
    with _lock:
        _idle.append((key, clients))
        own = [each for each in _idle if each[0][0] == key[0]]
        spare = own[: max(0, len(own) - KEPT_MAX)]
        for each in spare:
            _idle.remove(each)
    for _, unused in spare:
        unused.close()


def _begin_anew() -> None:
    """Have a lock that no thread of the parent holds."""
    global _lock  # noqa: PLW0603 - there is no other way to replace it
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)
