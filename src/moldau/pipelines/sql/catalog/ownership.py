"""Exactly one server of a service runs its queries: the one that has the catalog's partition.

The servers of a service are members of one group, which reads the catalog's topic. Whoever comes
and finds a member there does not join, and says who it is. Of two that come at the same moment both
join, and the group gives the topic's one partition to one of them; the other leaves. A member that
is silent for `session_timeout_ms` is out, so a server that was killed is replaced after that time.
Meanwhile, and whatever happens to the group, the catalog's producer fences whoever came before.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from moldau import Admin, Consumer
from moldau.client.errors import ClientError, KafkaError
from moldau.client.group_descriptions import GroupMember
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.topic import topic_name
from moldau.protocol.errors import ErrorCode

SESSION_MS: Final = 10_000
POLL_MS: Final = 500
_PREFIX: Final = "moldau-sql"


class OwnedError(PipelineError):
    """Another server runs the queries."""


@dataclass(frozen=True, slots=True)
class ServiceOwner:
    """A server, as the group knows it: this travels as its `client.id`."""

    host: str
    pid: int
    address: str
    """Where it listens, as `http://127.0.0.1:8088`."""
    since_ms: int

    @property
    def client_id(self) -> str:
        """Return it as one text."""
        return "|".join((_PREFIX, self.host, str(self.pid), self.address, str(self.since_ms)))

    @classmethod
    def parse(cls, client_id: str) -> "ServiceOwner | None":
        """Read what `client_id` has made; None if somebody else is a member."""
        match client_id.split("|"):
            case [prefix, host, pid, address, since] if prefix == _PREFIX:
                return cls(host, int(pid), address, int(since))
            case _:
                return None

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000, UTC)
        return (
            f"the server at {self.address} (host {self.host}, pid {self.pid}, "
            f"since {since:%Y-%m-%d %H:%M:%S} UTC)"
        )


def find_owner(servers: str, service: str) -> ServiceOwner | None:
    """Return the server that owns a service, or is about to; None if there is none."""
    with Admin(servers) as admin:
        owners = (
            ServiceOwner.parse(each.client_id) for each in _members(admin, topic_name(service))
        )
        return next(filter(None, owners), None)


def _members(admin: Admin, group: str) -> list[GroupMember]:
    found = admin.describe_groups([group])[group]
    if isinstance(found, KafkaError):
        if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return []
        raise found
    # One that has the partition says more than one that has just come, too.
    return sorted(found.members, key=lambda each: not each.assignment)


class Ownership:
    """Holds a service for one server, until it is closed or lost."""

    def __init__(
        self,
        servers: str,
        service: str,
        owner: ServiceOwner,
        *,
        session_timeout_ms: int = SESSION_MS,
        is_alive: Callable[[ServiceOwner], bool] = lambda _: False,
        on_lost: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Say who is to own it; `look`, then `join` make it so.

        `is_alive` asks another owner; if it answers nobody waits for its session to end. `on_lost`
        is told why, in a thread of its own, when the service is lost.
        """
        self._servers = servers
        self._name = topic_name(service)
        self._place = TopicPartition(self._name, 0)
        self._service = service
        self._owner = owner
        self._session_timeout_ms = session_timeout_ms
        self._is_alive = is_alive
        self._on_lost = on_lost
        self._stopping = threading.Event()
        self._has_it = threading.Event()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.look()
        self.join()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def look(self, waiting: Callable[[str], None] = lambda _: None) -> None:
        """Return when nobody owns the service; `OwnedError` says who does.

        `waiting` is told of a server that does not answer and is waited for until its session ends.
        """
        wait_seconds = self._session_timeout_ms / 1000 * 2
        deadline = time.monotonic() + wait_seconds
        with Admin(self._servers) as admin:
            is_told = False
            while (other := self._other(admin)) is not None:
                owner = ServiceOwner.parse(other.client_id)
                if owner is None:
                    raise OwnedError(
                        f"group {self._name} has a member {other.client_id} at {other.host}, which "
                        "is no server: end it, or choose another --service"
                    )
                if self._is_alive(owner) or time.monotonic() > deadline:
                    raise OwnedError(f"service {self._service} is run by {owner}")
                if not is_told:
                    waiting(f"waiting for {owner}, which does not answer, to be out of its group")
                    is_told = True
                self._stopping.wait(POLL_MS / 1000)

    def _other(self, admin: Admin) -> GroupMember | None:
        members = _members(admin, self._name)
        return next((each for each in members if each.client_id != self._owner.client_id), None)

    def join(self) -> None:
        """Own the service; `OwnedError` says who was quicker.

        Brokers wait for further members before they let a group begin, for three seconds by
        default (`group.initial.rebalance.delay.ms`). Meanwhile `give_up` ends the wait.
        """
        consumer = Consumer(
            self._servers,
            client_id=self._owner.client_id,
            group_id=self._name,
            group_protocol="classic",  # here the member chooses its session's length
            session_timeout_ms=self._session_timeout_ms,
            heartbeat_interval_ms=self._session_timeout_ms // 5,
            partition_assignment_strategy="cooperative-sticky",  # who has it keeps it
            enable_auto_commit=False,
        )
        joined = threading.Event()
        self._thread = threading.Thread(
            target=self._hold, args=(consumer, joined), name="moldau-sql-owner", daemon=True
        )
        self._thread.start()
        joined.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def _hold(self, consumer: Consumer, joined: threading.Event) -> None:
        """Be a member, and have the partition; runs in a thread until it is closed or lost."""
        lost: list[str] = []

        def assigned(_: object) -> None:
            consumer.pause(*consumer.assignment)
            self._has_it.set()
            joined.set()

        consumer.subscribe(
            self._name,
            on_assigned=lambda partitions: assigned(partitions) if partitions else None,
            on_revoked=lambda partitions: lost.append("another server has it") if partitions else 0,
            on_lost=lambda partitions: lost.append("its session ended") if partitions else 0,
        )
        try:
            self._keep(consumer, joined, lost)
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for it
            lost.append(str(error))
            self._failure = self._failure or error
        finally:
            joined.set()
            with contextlib.suppress(ClientError):
                consumer.close()
        if lost and self._has_it.is_set() and not self._stopping.is_set():
            self._on_lost(f"service {self._service} is lost: {lost[0]}")

    def _keep(self, consumer: Consumer, joined: threading.Event, lost: list[str]) -> None:
        with Admin(self._servers) as admin:
            while not (lost or self._stopping.is_set()):
                consumer.poll(timeout_ms=POLL_MS)
                if joined.is_set() or (other := self._other(admin)) is None:
                    continue
                if self._place in other.assignment:
                    owner = ServiceOwner.parse(other.client_id) or other.client_id
                    self._failure = OwnedError(f"service {self._service} is run by {owner}")
                    return

    def give_up(self) -> None:
        """Have `join` return, if it is still waiting."""
        if not self._has_it.is_set():
            self._stopping.set()

    def close(self) -> None:
        """Leave the group: another server may own the service at once."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
