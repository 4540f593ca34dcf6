"""Members of a group that watch each other: who owns what, and whether they may.

Many of them are small: they speak our own codec on a connection each, in one event loop.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from moldau.protocol.apis import api_of
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.schema import Message
from tests.conformance.answers.requests import (
    assignment,
    beat,
    join,
    joining,
    subscription,
    sync,
)

HEARTBEAT_SECONDS = 0.3
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27
JOIN, SYNC, HEARTBEAT, LEAVE, NEW_HEARTBEAT = 9, 5, 4, 5, 1
LEAVE_EPOCH = -1


class Watch:
    """Knows who owns which partition, and notes when two do."""

    def __init__(self) -> None:
        self.owners: dict[int, object] = {}
        self.leases: dict[object, float] = {}
        """Until when a member may think that it is one; of those that say so."""
        self.violations: list[str] = []
        self.assigned = 0
        self._lock = Lock()

    def take(self, owner: object, partitions: Sequence[int]) -> None:
        """Somebody was told that these are now its own."""
        with self._lock:
            self.assigned += len(partitions)
            for partition in partitions:
                other = self.owners.get(partition, owner)
                if other is not owner and time.monotonic() < self.leases.get(other, float("inf")):
                    self.violations.append(f"{partition} of {other} was given to {owner}")
                self.owners[partition] = owner

    def give(self, owner: object, partitions: Sequence[int]) -> None:
        """Somebody works no more on these."""
        with self._lock:
            for partition in partitions:
                if self.owners.get(partition) is owner:
                    del self.owners[partition]

    def owned(self, owner: object) -> list[int]:
        """Return what somebody owns."""
        with self._lock:
            return [partition for partition, other in self.owners.items() if other is owner]


class Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0

    async def call(self, request: Message, version: int) -> Any:
        self.correlation_id += 1
        frame = encode_request(
            request, version, correlation_id=self.correlation_id, client_id="churn"
        )
        self.writer.write(b"".join(frame))
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        data = await self.reader.readexactly(size)
        _, answer = decode_response(data, api_of(type(request)).response_class, version)
        return answer


class Small:
    """What small members of both protocols have in common."""

    def __init__(
        self, watch: Watch, topic: str, topic_id: bytes, partitions: int, name: str
    ) -> None:
        self.watch = watch
        self.group = self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.name = name
        self.is_leaving = False

    def __repr__(self) -> str:
        return self.name

    async def run(self, host: str, port: int) -> None:
        """Be a member until told to leave, or cancelled: then it is as if it were killed."""
        reader, writer = await asyncio.open_connection(host, port)
        try:
            await self.live(Connection(reader, writer))
        finally:
            self.watch.give(self, self.watch.owned(self))
            writer.close()

    async def live(self, connection: Connection) -> None:
        raise NotImplementedError

    def renew(self, asked_at: float, session_ms: int) -> None:
        """The broker has heard from it."""
        self.watch.leases[self] = asked_at + session_ms / 1000


class ClassicMember(Small):
    """A member of a classic group, eager: it gives everything up before it joins again."""

    session_ms = 10_000

    async def live(self, connection: Connection) -> None:
        member_id = ""
        while not self.is_leaving:
            self.watch.give(self, self.watch.owned(self))
            asked_at = time.monotonic()
            fields = {
                "session_timeout_ms": self.session_ms,
                "rebalance_timeout_ms": 60_000,
                "metadata": subscription(self.topic),  # any member may be the one who assigns
            }
            joined = await connection.call(join(self.group, member_id, **fields), JOIN)
            if joined.error_code == MEMBER_ID_REQUIRED:
                member_id = joined.member_id
                continue
            if joined.error_code:
                member_id = ""
                continue
            self.renew(asked_at, self.session_ms)
            member_id, generation = joined.member_id, joined.generation_id
            shares: Mapping[str, bytes] = {}
            if joined.leader == member_id:
                shares = self._shares(sorted(member.member_id for member in joined.members))
            asked_at = time.monotonic()
            synced = await connection.call(sync(self.group, member_id, generation, shares), SYNC)
            if synced.error_code:
                continue
            self.renew(asked_at, self.session_ms)
            self.watch.take(self, assigned_partitions(synced.assignment))
            await self._beat(connection, member_id, generation)
        members = [MemberIdentity(member_id=member_id)]
        self.watch.give(self, self.watch.owned(self))
        await connection.call(LeaveGroupRequest(group_id=self.group, members=members), LEAVE)

    async def _beat(self, connection: Connection, member_id: str, generation: int) -> None:
        """Say that it is there until something changes."""
        request = HeartbeatRequest(
            group_id=self.group, member_id=member_id, generation_id=generation
        )
        while not self.is_leaving:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            asked_at = time.monotonic()
            answer = await connection.call(request, HEARTBEAT)
            if answer.error_code:
                return
            self.renew(asked_at, self.session_ms)

    def _shares(self, members: Sequence[str]) -> Mapping[str, bytes]:
        return {
            member: assignment({self.topic: range(number, self.partitions, len(members))})
            for number, member in enumerate(members)
        }


class NewMember(Small):
    """A member of the new protocol: it gives up what it must, and then says so."""

    session_ms = 6000
    """As the broker is set."""

    async def live(self, connection: Connection) -> None:
        member_id = self.name.ljust(22, "-")
        epoch = 0
        while not self.is_leaving:
            asked_at = time.monotonic()
            owned = self.watch.owned(self)
            request = joining(self.group, member_id, self.topic)
            if epoch:
                places = {self.topic_id: owned} if owned else {}
                request = beat(self.group, member_id, epoch, owned=places)
            answer = await connection.call(request, NEW_HEARTBEAT)
            if answer.error_code:
                self.watch.give(self, self.watch.owned(self))
                epoch = 0
                continue
            self.renew(asked_at, self.session_ms)
            epoch = answer.member_epoch
            if answer.assignment is not None:
                wanted = [n for row in answer.assignment.topic_partitions for n in row.partitions]
                self.watch.give(self, sorted(set(owned) - set(wanted)))
                self.watch.take(self, sorted(set(wanted) - set(owned)))
            await asyncio.sleep(HEARTBEAT_SECONDS)
        self.watch.give(self, self.watch.owned(self))
        await connection.call(beat(self.group, member_id, LEAVE_EPOCH), NEW_HEARTBEAT)


def assigned_partitions(data: bytes) -> list[int]:
    """Read an assignment of one topic, which any version of it begins with."""
    if len(data) < 6 or not int.from_bytes(data[2:6], "big"):
        return []
    start = 8 + int.from_bytes(data[6:8], "big")
    count = int.from_bytes(data[start : start + 4], "big")
    places = range(start + 4, start + 4 + 4 * count, 4)
    return [int.from_bytes(data[place : place + 4], "big") for place in places]
