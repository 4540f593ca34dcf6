"""FindCoordinator v0-v6: which broker is in charge of a group or a transactional id."""

from collections.abc import Awaitable, Callable, Iterable
from enum import IntEnum
from typing import Final, TypeVar

from moldau.client.cluster import Cluster, Node
from moldau.client.connection import Connection
from moldau.client.errors import KafkaError, RequestTimeoutError, UnreachableError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

Result = TypeVar("Result")

LANE: Final = "coordinator"
"""Coordinators are asked on connections of their own: no Fetch or Produce is waited for."""

MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Another broker is in charge, or none is: it is to be looked up again."""


class CoordinatorType(IntEnum):
    """What a coordinator is in charge of, with Kafka's numbers."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


FIRST_VERSIONS: Final = {
    CoordinatorType.GROUP: 0,
    CoordinatorType.TRANSACTION: 1,
    CoordinatorType.SHARE: 6,
}
MANY_KEYS_SINCE: Final = 4
KEYS_MAX: Final = 10_000
"""How many are remembered, of all kinds."""


class CoordinatorLookup:
    """Finds the coordinators of a kind of key; the cluster remembers them until they are wrong."""

    def __init__(self, cluster: Cluster, key_type: CoordinatorType) -> None:
        self._cluster = cluster
        self._key_type = key_type

    async def find(self, key: str) -> int:
        """Return the broker in charge of a key; `KafkaError` if there is none yet."""
        found = self._cluster.coordinators.get((self._key_type, key))
        if found is not None:
            return found
        answer = (await self.find_many([key]))[key]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    async def find_many(self, keys: Iterable[str]) -> dict[str, int | KafkaError]:
        """Look up keys with one attempt, in one request where the broker can; in their order."""
        wanted = list(dict.fromkeys(keys))
        answers: dict[str, int | KafkaError] = {}
        known = self._cluster.coordinators
        missing = [key for key in wanted if (self._key_type, key) not in known]
        if missing:
            connection = await self._cluster.connect_any()
            version = connection.version_of(FindCoordinatorRequest)
            if version < FIRST_VERSIONS[self._key_type]:
                code = ErrorCode.UNSUPPORTED_VERSION
                raise KafkaError(code, f"FindCoordinator at {connection.address}")
            if version >= MANY_KEYS_SINCE:
                answers |= await self._ask(connection, missing, version)
            else:
                for key in missing:
                    answers[key] = await self._ask_one(connection, key, version)
        return {key: answers.get(key, known.get((self._key_type, key), -1)) for key in wanted}

    def forget(self, key: str) -> None:
        """Believe no longer who is in charge of a key: a broker has said otherwise, or is gone."""
        self._cluster.coordinators.pop((self._key_type, key), None)

    async def connect(self, key: str, lane: str = LANE) -> Connection:
        """Return a connection to the broker in charge of a key."""
        return await self._cluster.connect(await self.find(key), lane)

    async def attempt(
        self, key: str, ask: Callable[[Connection], Awaitable[Result]], lane: str = LANE
    ) -> Result:
        """Ask the coordinator once; if it is not the one, or not there, it is forgotten.

        A broker answers in order: what may be parked there, as a JoinGroup, has its own lane.
        """
        try:
            return await ask(await self.connect(key, lane))
        except KafkaError as error:
            if error.code in MOVED:
                self.forget(key)
            raise
        except (UnreachableError, RequestTimeoutError):
            self.forget(key)
            raise

    async def call(
        self,
        key: str,
        ask: Callable[[Connection], Awaitable[Result]],
        what: str,
        *,
        timeout_ms: int | None = None,
        is_final: Callable[[KafkaError], bool] | None = None,
    ) -> Result:
        """Ask the coordinator until it answers, an error says that it never will, or time is up.

        What may pass is the coordinator's absence, its move and its loading; `ask` raises them.
        """

        async def attempt() -> Result:
            return await self.attempt(key, ask)

        return await self._cluster.retry(attempt, what, timeout_ms=timeout_ms, is_final=is_final)

    async def _ask(
        self, connection: Connection, keys: list[str], version: int
    ) -> dict[str, int | KafkaError]:
        request = FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=keys)
        answer = await connection.call(request, FindCoordinatorResponse, version)
        found: dict[str, int | KafkaError] = {}
        for row in answer.coordinators:
            if row.error_code:
                found[row.key] = self._error(row.error_code, row.key, row.error_message)
            else:
                found[row.key] = self._take(row.key, Node(row.node_id, row.host, row.port))
        for key in keys:
            if key not in found:
                found[key] = self._error(ErrorCode.COORDINATOR_NOT_AVAILABLE, key, None)
        return found

    async def _ask_one(self, connection: Connection, key: str, version: int) -> int | KafkaError:
        request = FindCoordinatorRequest(key=key, key_type=self._key_type)
        answer = await connection.call(request, FindCoordinatorResponse, version)
        if answer.error_code:
            return self._error(answer.error_code, key, answer.error_message)
        return self._take(key, Node(answer.node_id, answer.host, answer.port))

    def _take(self, key: str, node: Node) -> int:
        known = self._cluster.coordinators
        if len(known) >= KEYS_MAX:
            known.clear()
        known[self._key_type, key] = node.node_id
        # The answer may know a broker that the metadata do not have yet.
        self._cluster.nodes.setdefault(node.node_id, node)
        return node.node_id

    def _error(self, code: int, key: str, message: str | None) -> KafkaError:
        what = f"coordinator of {self._key_type.name.lower()} {key}"
        return KafkaError(code, what, message)
