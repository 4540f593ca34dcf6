"""What the parts of the admin client share: the cluster, and asking its controller."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Self, TypeVar

from moldau.client.cluster import Cluster
from moldau.client.connection import Connection
from moldau.client.errors import KafkaError, UnreachableError
from moldau.client.settings import ClientSettings, load
from moldau.client.shared_cluster import SharedCluster
from moldau.protocol.errors import ErrorCode

Result = TypeVar("Result")

PASSING: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED})
"""The errors after which nothing was changed, and the next attempt may do it."""


class AdminBase:
    """A client with a cluster behind it."""

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        self._cluster = cluster or Cluster(load(ClientSettings, servers, config, settings))

    async def start(self) -> None:
        """Find the cluster; `async with` does it."""
        await self._cluster.start()

    async def close(self) -> None:
        """Hang up everywhere; `async with` does it."""
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask_controller(
        self, ask: Callable[[Connection], Awaitable[Result]], what: str
    ) -> Result:
        """Ask the broker that the cluster names as its controller, another if there is none.

        In a KRaft cluster every broker forwards what the controller must decide (KIP-590).
        """

        async def attempt() -> Result:
            try:
                return await ask(await self._controller())
            except KafkaError as error:
                if error.code is ErrorCode.NOT_CONTROLLER:
                    await self._cluster.ask_topics([])
                raise

        return await self._cluster.retry(attempt, what, is_final=_is_final)

    async def _controller(self) -> Connection:
        try:
            return await self._cluster.connect(self._cluster.controller_id)
        except UnreachableError:
            return await self._cluster.connect_any()

    async def _ask_any(self, ask: Callable[[Connection], Awaitable[Result]], what: str) -> Result:
        async def attempt() -> Result:
            return await ask(await self._cluster.connect_any())

        return await self._cluster.retry(attempt, what)

    async def _ask_node(
        self, node_id: int, ask: Callable[[Connection], Awaitable[Result]], what: str
    ) -> Result:
        if node_id not in self._cluster.nodes:
            await self._cluster.refresh([])
        if node_id not in self._cluster.nodes:
            raise UnreachableError(f"there is no broker {node_id} in the cluster")

        async def attempt() -> Result:
            return await ask(await self._cluster.connect(node_id))

        return await self._cluster.retry(attempt, what, is_final=_is_final)


def _is_final(error: KafkaError) -> bool:
    return error.code not in PASSING
