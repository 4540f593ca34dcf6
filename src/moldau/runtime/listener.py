"""Clients' connections: accepting them, serving all in turns, and closing them."""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from moldau._native.client_stream import ClientStream, ListenerTurns
from moldau._native.connection import ConnectionLimits
from moldau.broker.calls import Endpoint, Peer
from moldau.broker.ports import Timer
from moldau.broker.router import Router
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.listeners import (
    ListenerSetting,
    advertised_listeners_of,
    listeners_of,
)
from moldau.runtime.client_socket import ClientSocket
from moldau.runtime.connection_quota import ConnectionQuota, plain_host, resolve_overrides
from moldau.runtime.environment import AcceptedSocket, ListeningSocket, NodeEnvironment
from moldau.runtime.metrics import Metrics
from moldau.runtime.receive_buffers import ReceiveBuffers

_log: Final = logging.getLogger(__name__)

ACCEPTED_AT_ONCE_MAX: Final = 16
ACCEPT_RETRY_SECONDS: Final = 1.0
CHECK_SECONDS_MAX: Final = 5.0


class Listener:
    """All connections of a broker's clients.

    A turn begins with the first bytes or answers and ends when the loop has come round: then
    `on_turn` writes what the requests have appended, and each connection gets one write.
    """

    def __init__(
        self,
        router: Router,
        on_turn: Callable[[], None],
        metrics: Metrics,
        environment: NodeEnvironment,
    ) -> None:
        settings = router.broker.settings
        self.router = router
        queued = settings.queued_max_request_bytes
        self.buffers = ReceiveBuffers(queued if queued > 0 else None)
        self.limits = ConnectionLimits(
            frame_bytes_max=settings.socket_request_max_bytes,
            pending_requests_max=settings.moldau_connection_pending_max_requests,
            pending_bytes_max=settings.moldau_connection_pending_max_bytes,
            unsent_bytes_max=settings.moldau_connection_unsent_max_bytes,
        )
        self._loop = asyncio.get_running_loop()
        self.environment = environment
        self._clients: dict[ClientSocket, None] = {}
        self._quota = ConnectionQuota()
        self._overrides_text = ""
        self._resolving: asyncio.Task[None] | None = None
        self._sockets: list[tuple[ListeningSocket, ListenerSetting]] = []
        self._is_accepting = False
        self._is_closed = False
        self._accepts: dict[asyncio.Task[None], None] = {}
        self._timer: Timer | None = None
        self._all_lost = asyncio.Event()
        self.turns = self._make_turns(on_turn, metrics)
        self._measure_with(metrics)

    def _make_turns(self, on_turn: Callable[[], None], metrics: Metrics) -> ListenerTurns:
        received, sent = "moldau_network_received_bytes_total", "moldau_network_sent_bytes_total"
        return ListenerTurns(
            self.buffers,
            metrics.counter(received, "Bytes that clients have sent."),
            metrics.counter(sent, "Bytes of responses."),
            {
                key: metrics.histogram(
                    "moldau_request_seconds",
                    "From the arrival of a request to its response.",
                    api=served.api.name,
                )
                for key, served in self.router.served.items()
            },
            clock=self.environment.now,
            monotonic=self.environment.monotonic,
            call_soon=self._loop.call_soon,
            on_turn=on_turn,
            failed=_cut_failed,
        )

    def _measure_with(self, metrics: Metrics) -> None:
        self._rejected = metrics.counter(
            "moldau_connections_rejected_total",
            "Connections closed because of max.connections.per.ip.",
        )
        self._accepted = metrics.counter(
            "moldau_connections_accepted_total", "Connections that clients have opened."
        )
        metrics.gauge(
            "moldau_connections", "Connections of clients now.", lambda: len(self._clients)
        )
        metrics.gauge(
            "moldau_network_buffer_bytes",
            "Memory for requests that did not come at once.",
            lambda: self.buffers.own_bytes,
        )

    @property
    def _settings(self) -> BrokerSettings:
        return self.router.broker.settings

    # ------------------------------------------------------------------- starting and stopping

    async def start(self) -> tuple[ListenerSetting, ...]:
        """Open all listeners and serve; return them with the ports that they have."""
        bound = self.open()
        await self.serve()
        return bound

    def open(self) -> tuple[ListenerSetting, ...]:
        """Open all listeners, whose clients wait until `serve`; return them with their ports."""
        settings = self._settings
        bound = []
        try:
            for address in listeners_of(settings):
                opened = self.environment.listen(
                    address.host,
                    address.port,
                    backlog=settings.socket_listen_backlog_size,
                    receive_bytes=settings.receive_buffer_bytes,
                )
                real = replace(address, port=opened[0].port)
                bound.append(real)
                self._sockets += [(each, real) for each in opened]
        except OSError:
            self._close_sockets()
            raise
        return tuple(bound)

    async def serve(self) -> None:
        """Accept connections."""
        self._follow_overrides()
        if self._resolving is not None:
            await self._resolving
        self._accept_again()
        self._check()

    def settings_changed(self) -> None:
        """There may be room for more connections now."""
        if self._sockets:
            self._follow_overrides()
            self._accept_again()

    def _follow_overrides(self) -> None:
        """Look up the names in max.connections.per.ip.overrides, if there are others now."""
        text = self._settings.max_connections_per_ip_overrides
        if text != self._overrides_text:
            self._overrides_text = text
            self._stop_resolving()
            self._resolving = self._loop.create_task(self._resolve(text))

    async def _resolve(self, text: str) -> None:
        self._quota.overrides = await resolve_overrides(text, self.environment.resolve)

    def _stop_resolving(self) -> None:
        if self._resolving is not None:
            self._resolving.cancel()

    async def close(self, grace_seconds: float) -> None:
        """Accept nothing more, answer what was asked, and close all connections."""
        self._is_closed = True
        self._stop_accepting()
        self._close_sockets()
        if self._timer is not None:
            self._timer.cancel()
        self._stop_resolving()
        for client in list(self._clients):
            client.finish()
        self.router.broker.parking.let_go()
        self.router.broker.coordinators.let_go()
        if self._clients:
            try:
                await asyncio.wait_for(self._all_lost.wait(), grace_seconds)
            except TimeoutError:
                _log.warning("%d connections were cut with requests open", len(self._clients))
                for client in list(self._clients):
                    client.abort()
                await self._all_lost.wait()
        if self._accepts:
            await asyncio.wait(list(self._accepts))

    def _close_sockets(self) -> None:
        for each, _ in self._sockets:
            each.close()
        self._sockets.clear()

    # ------------------------------------------------------------------------------ accepting

    def _accept_again(self) -> None:
        if self._is_accepting or self._is_closed:
            return
        self._is_accepting = True
        for each, address in self._sockets:
            each.when_ready(partial(self._accept, each, address))

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            for each, _ in self._sockets:
                each.when_ready(None)

    def _accept(self, listening: ListeningSocket, address: ListenerSetting) -> None:
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            wait_seconds = self._quota.wait_seconds(self._settings, self.environment.monotonic())
            if wait_seconds != 0:
                # As in Kafka, the others wait in the system's backlog.
                self._stop_accepting()
                if wait_seconds is not None:
                    self._later(wait_seconds, self._accept_again)
                return
            try:
                accepted = listening.accept(send_bytes=self._settings.send_buffer_bytes)
            except OSError as error:
                # No file descriptors are left, most likely.
                _log.error("accepting a connection failed: %s", error)
                self._stop_accepting()
                self._later(ACCEPT_RETRY_SECONDS, self._accept_again)
                return
            if accepted is None:
                return
            self._admit(accepted, address)

    def _admit(self, accepted: AcceptedSocket, address: ListenerSetting) -> None:
        monotonic = self.environment.monotonic()
        host = plain_host(accepted.peer_host)
        if not self._quota.admit(host, self._settings, monotonic):
            self._rejected.value += 1
            accepted.close()
            return
        self._accepted.value += 1
        advertised = advertised_to(self._settings, address, plain_host(accepted.local_host))
        peer = Peer(address.name, host, advertised, accepted.peer_port)
        client = ClientSocket(self, peer, monotonic)
        self._clients[client] = None
        self._all_lost.clear()
        task = self._loop.create_task(self._connect(client, accepted))
        self._accepts[task] = None
        task.add_done_callback(self._accepts.__delitem__)

    async def _connect(self, client: ClientSocket, accepted: AcceptedSocket) -> None:
        try:
            await accepted.begin(client)
        except OSError:
            # Gone before it was here.
            accepted.close()
            self.lost(client)
            return
        if self._is_closed:
            client.finish()

    def lost(self, client: ClientSocket) -> None:
        """Forget a connection."""
        del self._clients[client]
        self._quota.release(client.connection.peer.host)
        self._accept_again()
        if self.turns.starved:
            self.turns.schedule()
        if not self._clients:
            self._all_lost.set()

    def _check(self) -> None:
        """Cut clients that are idle or stuck."""
        settings = self._settings
        idle_ms = settings.connections_max_idle_ms
        idle_seconds = idle_ms / 1000 if idle_ms >= 0 else None
        stall_seconds = settings.moldau_connection_stall_max_ms / 1000
        monotonic = self.environment.monotonic()
        for client in list(self._clients):
            client.check(monotonic, idle_seconds=idle_seconds, stall_seconds=stall_seconds)
        shortest = min(stall_seconds, CHECK_SECONDS_MAX if idle_seconds is None else idle_seconds)
        interval = min(CHECK_SECONDS_MAX, max(0.02, shortest / 4))
        self._timer = self._later(interval, self._check)

    def _later(self, seconds: float, do: Callable[[], None]) -> Timer:
        return self.environment.at(self.environment.monotonic() + seconds, do)


def _cut_failed(client: ClientStream, error: Exception) -> None:
    """Close a connection that ran into an error of ours; the others have their turn."""
    assert isinstance(client, ClientSocket), "all are"
    _log.error("a connection of %s failed", client.connection.peer.host, exc_info=error)
    client.abort()


def advertised_to(settings: BrokerSettings, address: ListenerSetting, local: str) -> Endpoint:
    """Return the address that a client is told which reached us at `local`."""
    for told in advertised_listeners_of(settings) or ():
        if told.name == address.name:
            return Endpoint(told.host, told.port or address.port)
    if ipaddress.ip_address(local.partition("%")[0]).is_loopback:
        return Endpoint("localhost", address.port)
    return Endpoint(local, address.port)
