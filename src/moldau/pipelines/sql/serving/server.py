"""The server: owns a service, runs its queries, and answers over HTTP, until it is told to end."""

import ipaddress
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final, Self

import uvicorn

from moldau import Admin
from moldau.client.errors import ClientError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.definitions import CatalogChange
from moldau.pipelines.sql.catalog.ownership import SESSION_MS, Ownership, ServiceOwner
from moldau.pipelines.sql.catalog.topic import CatalogLostError, CatalogTopic, load_catalog
from moldau.pipelines.sql.service import Ports, Service
from moldau.pipelines.sql.serving.http_api import LOOPBACK, ServerIdentity, make_app
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.pipelines.sql.serving.streaming import Executions
from moldau.pipelines.views.announcing import announced

PORT: Final = 8088
"""ksqlDB's, too."""
HEALTH_SECONDS_MAX: Final = 2.0
CLOSE_SECONDS_MAX: Final = 10


class _GuardedLog:
    """Who cannot be sure of what is in the catalog must end."""

    def __init__(self, topic: CatalogTopic, end: Callable[[str], None]) -> None:
        self._topic = topic
        self._end = end

    def append(self, changes: Sequence[CatalogChange]) -> None:
        try:
            self._topic.append(changes)
        except CatalogLostError as error:
            self._end(str(error))
            raise


class SqlServer:
    """A server in this process: threads of its own, and nothing that the main thread must do.

    with SqlServer("localhost:9092", make_ports, port=0) as server:
        print(server.address)
        reason = server.wait()
    """

    def __init__(
        self,
        servers: str,
        make_ports: Callable[[], Ports],
        *,
        service: str = "default",
        host: str = "127.0.0.1",
        port: int = PORT,
        session_timeout_ms: int = SESSION_MS,
        say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),  # noqa: T201
    ) -> None:
        """Listen; `start` does the rest. `make_ports` is called when nobody else has the service.

        `host` is an address of this machine; a client that reaches it reads and deletes topics.
        """
        self._servers = servers
        self._make_ports = make_ports
        self._service_name = service
        self._say = say
        self._socket = _listen(host, port)
        self.address = _address(self._socket)
        self._hosts = LOOPBACK if _is_loopback(host) else ("*",)
        now_ms = int(time.time() * 1000)
        self._owner = ServiceOwner(socket.gethostname(), os.getpid(), self.address, now_ms)
        self._ownership = Ownership(
            servers,
            service,
            self._owner,
            session_timeout_ms=session_timeout_ms,
            is_alive=self._is_alive,
            on_lost=self._end,
        )
        self._topic: CatalogTopic | None = None
        self._ports: Ports | None = None
        self._service: Service | None = None
        self._executions = Executions()
        self._announcement = ExitStack()
        self._http: uvicorn.Server | None = None
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()
        self._reason: str | None = None

    @property
    def service(self) -> Service:
        """What answers, once it has started: its own process need not ask it by HTTP."""
        assert self._service is not None, "it has not started"
        return self._service

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Serve; `OwnedError` if another server has the service.

        Questions are answered when this returns. What changes anything waits until the service is
        this server's, which takes a few seconds.
        """
        self._topic = CatalogTopic(self._servers, self._service_name)
        self._ownership.look(self._say)
        self._ports = self._make_ports()
        log = _GuardedLog(self._topic, self._end)
        service = self._service = Service(load_catalog(self._topic), log, self._ports)
        identity = ServerIdentity(self._service_name, self._owner)
        app = make_app(service, identity, self._executions, hosts=self._hosts)
        self._http = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=CLOSE_SECONDS_MAX,
            )
        )
        self._begin("moldau-sql-http", self._serve)
        with Admin(self._servers) as admin:
            cluster = admin.describe_cluster().cluster_id
        self._announcement.enter_context(announced(self.address, cluster))
        self._begin("moldau-sql-opening", lambda: self._open(service))

    def wait(self, seconds_max: float | None = None) -> str | None:
        """Wait until the server must end; return why, or None when it was closed or time is up."""
        self._ending.wait(seconds_max)
        return self._reason

    def close(self) -> None:
        """Stop the queries, and let another server have the service."""
        self._ending.set()
        self._announcement.close()
        self._executions.cancel_all()
        if self._http is not None:
            self._http.should_exit = True
        self._ownership.give_up()
        for thread in self._threads:
            # An engine that does not heed that nobody waits for it is left behind.
            thread.join(2 * CLOSE_SECONDS_MAX)
        if self._ports is not None:
            self._ports.close()
        if self._topic is not None:
            self._topic.close()
        # The last thing: nobody may run the queries before they are stopped.
        self._ownership.close()
        self._socket.close()

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        assert self._http is not None
        self._http.run(sockets=[self._socket])

    def _open(self, service: Service) -> None:
        """Have the service: after this nobody else writes to the catalog."""
        assert self._topic is not None
        try:
            self._ownership.join()
            if self._ending.is_set():
                return
            self._topic.open()
            service.open(load_catalog(self._topic))
        except (PipelineError, ClientError) as error:
            self._end(str(error))

    def _end(self, reason: str) -> None:
        """Say why it must end; whoever waits closes it."""
        self._reason = self._reason or reason
        self._ending.set()
        self._executions.cancel_all()

    def _is_alive(self, owner: ServiceOwner) -> bool:
        try:
            health = ServerClient(owner.address).health(HEALTH_SECONDS_MAX)
        except PipelineError:
            return False
        # Another program may have its port by now, and another host the same loopback address.
        told = (health.get("service"), health.get("host"), health.get("pid"))
        return told == (self._service_name, owner.host, owner.pid)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=_family(host))
    except OSError as error:
        raise PipelineError(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another port or host"
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    # Who listens everywhere is found by the machine's name.
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
