"""What the controller is told of directories, and what becomes of it when it does not listen."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.metadata.features import DIRECTORIES
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from moldau.runtime.directory_assignments import DirectoryAssignments

TOPIC_ID, DIRECTORY_ID = b"t" * 16, b"d" * 16


class Controller:
    """Answers everything with one thing."""

    def __init__(self, answer: AssignReplicasToDirsResponse | ErrorCode) -> None:
        self.controller = SimpleNamespace(image=SimpleNamespace(level=DIRECTORIES))
        self.asked = 0
        self._answer = answer

    def submit(self, _command: object, then: Any) -> None:
        self.asked += 1
        asyncio.get_running_loop().call_soon(then, self._answer)


@pytest.mark.parametrize(
    "answer",
    [
        AssignReplicasToDirsResponse(),
        AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_whoever_tells_goes_on_whatever_the_answer(answer: Any) -> None:
    async def tell() -> int:
        controller = Controller(answer)
        assignments = DirectoryAssignments(controller, 1, lambda: 5)  # type: ignore[arg-type]
        for index in range(2):
            await asyncio.wait_for(assignments.tell(TOPIC_ID, index, DIRECTORY_ID), 5)
        await asyncio.wait_for(assignments.begin(), 5)
        return controller.asked

    assert asyncio.run(tell()) == 2
