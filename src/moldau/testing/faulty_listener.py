"""A listener that refuses and cuts connections when a test says so."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from moldau.broker.router import Router
from moldau.metadata.settings.listeners import ListenerSetting as Address
from moldau.runtime.client_socket import ClientSocket
from moldau.runtime.event_loop import LoopEnvironment
from moldau.runtime.listener import Listener
from moldau.runtime.listening_sockets import open_sockets
from moldau.runtime.metrics import Metrics
from moldau.testing.request_faults import FaultRules, FaultyRouter


class FaultyListener(Listener):
    """Can refuse connections and cut those that there are."""

    def __init__(
        self,
        router: Router,
        on_turn: Callable[[], None],
        metrics: Metrics,
        environment: LoopEnvironment,
        rules: FaultRules,
    ) -> None:
        super().__init__(FaultyRouter(router, rules), on_turn, metrics, environment)
        self._rules = rules
        self._bound: tuple[Address, ...] = ()
        self._accepted_sockets: dict[ClientSocket, socket.socket] = {}

    def open(self) -> tuple[Address, ...]:
        """Open all listeners, and remember their ports."""
        self._bound = super().open()
        return self._bound

    async def serve(self) -> None:
        """Accept connections, unless they are to be refused."""
        await super().serve()
        if self._rules.is_refusing:
            self._close_listening()

    async def refuse(self) -> None:
        """Listen no more, and cut all connections."""
        self._rules.is_refusing = True
        self._close_listening()
        await self.cut()

    def _close_listening(self) -> None:
        self._stop_accepting()
        self._close_sockets()

    async def accept(self) -> None:
        """Listen again, on the same ports."""
        self._rules.is_refusing = False
        if self._sockets:
            return
        settings = self._settings
        for address in self._bound:
            opened = open_sockets(
                address.host,
                address.port,
                backlog=settings.socket_listen_backlog_size,
                receive_bytes=settings.socket_receive_buffer_bytes,
            )
            self._sockets += [(each, address) for each in opened]
        self._accept_again()

    async def cut(self) -> None:
        """Close all connections at once, also those that were not accepted yet."""
        for listening, _ in self._sockets:
            with suppress(BlockingIOError):
                while True:
                    listening.accept()[0].close()
        if self._accepts:
            await asyncio.wait(self._accepts)
        for client in list(self._clients):
            client.abort()

    # Connections, by their sockets: a forked child has them as well.

    async def _connect(self, client: ClientSocket, accepted: socket.socket) -> None:
        self._accepted_sockets[client] = accepted
        await super()._connect(client, accepted)

    def lost(self, client: ClientSocket) -> None:
        """Forget a connection."""
        self._accepted_sockets.pop(client, None)
        super().lost(client)

    def forget(self) -> None:
        """Close a forked child's copies: with them open, no connection would end in its parent."""
        for each in [*self._accepted_sockets.values(), *(each for each, _ in self._sockets)]:
            descriptor = each.detach()
            if descriptor >= 0:
                os.close(descriptor)
