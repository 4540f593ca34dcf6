"""Telling the controller in which log directory each of this broker's replicas is (KIP-858)."""

import asyncio
import logging
from collections.abc import Callable
from itertools import islice

from moldau.controller.commands import AssignDirectories
from moldau.kernel.ids import TopicId
from moldau.metadata.features import DIRECTORIES
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    AssignReplicasToDirsResponse,
)
from moldau.runtime.controller_host import ControllerHost

logger = logging.getLogger(__name__)

TOLD_AT_ONCE_MAX = 250
"""So many are decided in a few milliseconds."""

AssignedReplica = tuple[TopicId, int]
Told = dict[AssignedReplica, tuple[bytes, asyncio.Future[None]]]


class DirectoryAssignments:
    """What the controller is still to be told; what it was told last counts.

    One request is under way at a time, and what comes meanwhile goes with the next.
    """

    def __init__(
        self, controller: ControllerHost, node_id: int, broker_epoch: Callable[[], int]
    ) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._loop = asyncio.get_running_loop()
        self._pending: Told = {}
        self._is_busy = False

    def tell(self, topic_id: TopicId, index: int, directory_id: bytes) -> asyncio.Future[None]:
        """Say where a replica is; the future is done when that is committed.

        Nobody hears of it before this broker is registered, which `begin` says.
        """
        new: asyncio.Future[None] = self._loop.create_future()
        _, future = self._pending.get((topic_id, index), (b"", new))
        if self._controller.controller.image.level < DIRECTORIES:
            future.set_result(None)
            return future
        self._pending[topic_id, index] = directory_id, future
        self._send()
        return future

    async def begin(self) -> None:
        """This broker is registered: say what has gathered."""
        gathered = [future for _, future in self._pending.values()]
        self._send()
        if gathered:
            await asyncio.wait(gathered)

    def _send(self) -> None:
        broker_epoch = self._broker_epoch()
        if self._is_busy or not self._pending or broker_epoch < 0:
            return
        self._is_busy = True
        told = dict(islice(self._pending.items(), TOLD_AT_ONCE_MAX))
        for replica in told:
            del self._pending[replica]
        request = AssignReplicasToDirsRequest(
            broker_id=self._node_id, broker_epoch=broker_epoch, directories=_by_directory(told)
        )
        command = AssignDirectories(request)
        self._controller.submit(command, lambda answer: self._answered(told, answer))

    def _answered(self, told: Told, answer: AssignReplicasToDirsResponse | ErrorCode) -> None:
        self._is_busy = False
        code = answer if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code)
        if code:
            # It is told again at the next start, and until then nothing is lost.
            logger.warning("directories were not taken note of: %s", code.name)
        for _, future in told.values():
            if not future.done():
                future.set_result(None)
        self._send()


def _by_directory(told: Told) -> list[AssignReplicasToDirsRequestDirectoryData]:
    grouped: dict[bytes, dict[TopicId, list[int]]] = {}
    for (topic_id, index), (directory_id, _) in told.items():
        grouped.setdefault(directory_id, {}).setdefault(topic_id, []).append(index)
    return [
        AssignReplicasToDirsRequestDirectoryData(
            id=directory_id,
            topics=[
                AssignReplicasToDirsRequestTopicData(
                    topic_id=topic_id,
                    partitions=[
                        AssignReplicasToDirsRequestPartitionData(partition_index=index)
                        for index in indexes
                    ],
                )
                for topic_id, indexes in topics.items()
            ],
        )
        for directory_id, topics in grouped.items()
    ]
