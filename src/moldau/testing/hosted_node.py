"""A node that stops and starts again on one loop, with a time and faults that outlast it."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from moldau.controller.commands import CreateTopics
from moldau.controller.create_topics import UUID_BYTES
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.runtime.formatting import Memory
from moldau.runtime.node import Node
from moldau.testing.faulty_listener import FaultyListener
from moldau.testing.movable_time import MovableEnvironment
from moldau.testing.request_faults import FaultRules


class BrokerFailedError(Exception):
    """The broker could not go on by itself; its cause is what happened."""


class HostedNode:
    """Everything of a test's broker that lives on its loop; nothing of it is called elsewhere."""

    node: Node
    listener: FaultyListener

    def __init__(self, data: Path | None) -> None:
        self.environment = MovableEnvironment()
        self.rules = FaultRules(self.environment)
        self._data = data
        self._memory = Memory()

    async def start(self, static: dict[str, str]) -> None:
        """Return when clients are served."""
        self.node = Node(
            static,
            self.environment,
            memory=self._memory,
            listener=self._make_listener,
        )
        await self.node.start()

    def _make_listener(self, *arguments: Any) -> FaultyListener:
        router, on_turn, metrics, environment = arguments
        self.listener = FaultyListener(router, on_turn, metrics, environment, self.rules)
        return self.listener

    async def stop(self) -> None:
        """Stop in good order; `BrokerFailedError` if the node had failed by itself."""
        await self.node.stop()
        if self.node.failure.done():
            failure = self.node.failure.result()
            raise BrokerFailedError(f"the broker has failed: {failure}") from failure

    async def restart(self, static: dict[str, str], *, keep_data: bool) -> None:
        """Stop and start, with what it had or with nothing."""
        await self.stop()
        if not keep_data:
            self._memory = Memory()
            if self._data is not None:
                await asyncio.to_thread(shutil.rmtree, self._data)
        await self.start(static)

    async def create(self, topic: CreatableTopic) -> None:
        """Create a topic; `ValueError` says with Kafka's words why it cannot be."""
        decided: asyncio.Future[CreateTopicsResponse | ErrorCode]
        decided = asyncio.get_running_loop().create_future()
        request = CreateTopicsRequest(topics=[topic])
        command = CreateTopics(request, self.environment.entropy(UUID_BYTES))
        self.node.broker.controller.submit(command, decided.set_result)
        response = await decided
        if isinstance(response, ErrorCode):
            raise BrokerFailedError(f"the controller decides nothing: {response.name}")
        [result] = response.topics
        if result.error_code:
            raise ValueError(f"{ErrorCode(result.error_code).name}: {result.error_message}")

    async def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        topics = self.node.broker.image.topics
        return {topic.name: len(topic.partitions) for topic in topics}

    async def advance(self, seconds: float) -> None:
        """Move the time; return when all that is due is done, and all chores as well."""
        await self.environment.advance(seconds)
        await self.node.logs.do_chores()
        await self.environment.settle()
