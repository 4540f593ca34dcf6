import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from moldau.client.cluster import Cluster, Node
from moldau.client.connection import Connection
from moldau.client.coordinator_lookup import LANE, CoordinatorLookup, CoordinatorType
from moldau.client.errors import KafkaError, UnreachableError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


class FakeConnection:
    """Says who is in charge, in any version."""

    address = "fake:9092"

    def __init__(self, version: int) -> None:
        self.version = version
        self.nodes: dict[str, int | ErrorCode] = {}
        self.asked: list[list[str]] = []

    def version_of(self, _request: object) -> int:
        return self.version

    async def call(
        self, request: FindCoordinatorRequest, _response: object, version: int
    ) -> FindCoordinatorResponse:
        request.encode(version)
        keys = list(request.coordinator_keys) if version >= 4 else [request.key]
        self.asked.append(keys)
        rows = []
        for key in keys:
            found = self.nodes[key]
            code = found if isinstance(found, ErrorCode) else ErrorCode.NONE
            node = Node(-1 if code else int(found), "host", 9092)
            rows.append((key, code, node))
        if version >= 4:
            coordinators = [
                Coordinator(key=key, error_code=code, node_id=node.node_id, host="host", port=9092)
                for key, code, node in rows
            ]
            answer = FindCoordinatorResponse(coordinators=coordinators)
        else:
            _, code, node = rows[0]
            answer = FindCoordinatorResponse(
                error_code=code, node_id=node.node_id, host="host", port=9092
            )
        return FindCoordinatorResponse.decode(answer.encode(version), version)


class FakeCluster:
    def __init__(self, version: int) -> None:
        self.connection = FakeConnection(version)
        self.nodes: dict[int, Node] = {}
        self.coordinators: dict[tuple[int, str], int] = {}

    async def connect_any(self) -> FakeConnection:
        return self.connection

    async def connect(self, node_id: int, lane: str) -> tuple[int, str]:
        return node_id, lane

    async def retry(self, attempt: Callable[[], Awaitable[Any]], *_: object, **__: object) -> Any:
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if not error.retriable:
                    raise


def make(
    version: int, kind: CoordinatorType = CoordinatorType.GROUP
) -> tuple[CoordinatorLookup, FakeConnection]:
    cluster = FakeCluster(version)
    return CoordinatorLookup(cast("Cluster", cluster), kind), cluster.connection


@pytest.mark.parametrize("version", range(7))
def test_a_coordinator_is_remembered_until_it_is_wrong(version: int) -> None:
    async def run() -> None:
        lookup, connection = make(version)
        connection.nodes = {"g": 1}
        assert await lookup.find("g") == 1
        connection.nodes = {"g": 2}
        assert cast("object", await lookup.connect("g")) == (1, LANE)
        answers = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]

        async def ask(connection: Connection) -> tuple[int, str]:
            if answers:
                raise KafkaError(answers.pop(0))
            return cast("tuple[int, str]", connection)

        assert (await lookup.call("g", ask, "it"))[0] == 2
        assert connection.asked == [["g"], ["g"]], "who loads is still the one"

        async def fail(_connection: Connection) -> None:
            raise UnreachableError("gone")

        connection.nodes = {"g": 3}
        with pytest.raises(UnreachableError):
            await lookup.attempt("g", fail)
        assert await lookup.find("g") == 3

    asyncio.run(run())


@pytest.mark.parametrize("version", range(7))
def test_many_are_looked_up_at_once_where_that_can_be(version: int) -> None:
    async def run() -> None:
        lookup, connection = make(version)
        connection.nodes = {"a": 1, "b": ErrorCode.COORDINATOR_NOT_AVAILABLE, "c": 2}
        found = await lookup.find_many(["a", "b", "c"])
        assert (found["a"], found["c"]) == (1, 2)
        missing = found["b"]
        assert isinstance(missing, KafkaError)
        assert missing.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert len(connection.asked) == (1 if version >= 4 else 3)

    asyncio.run(run())


def test_an_old_broker_has_no_coordinators_for_newer_things() -> None:
    async def run() -> None:
        for kind, version in ((CoordinatorType.TRANSACTION, 0), (CoordinatorType.SHARE, 5)):
            lookup, _ = make(version, kind)
            with pytest.raises(KafkaError) as refused:
                await lookup.find("x")
            assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION

    asyncio.run(run())
