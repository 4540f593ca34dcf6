"""A listener that refuses and cuts connections when a test says so."""

import asyncio
import os
from collections.abc import Callable

from moldau.broker.router import Router
from moldau.metadata.settings.listeners import ListenerSetting as Address
from moldau.runtime.client_socket import ClientSocket
from moldau.runtime.environment import AcceptedSocket, NodeEnvironment
from moldau.runtime.listener import Listener
from moldau.runtime.listening_sockets import AcceptedConnection, MachineSocket
from moldau.runtime.metrics import Metrics
from moldau.testing.request_faults import FaultRules, FaultyRouter


class FaultyListener(Listener):
    """Can refuse connections and cut those that there are."""

    def __init__(
        self,
        router: Router,
        on_turn: Callable[[], None],
        metrics: Metrics,
        environment: NodeEnvironment,
        rules: FaultRules,
    ) -> None:
        super().__init__(FaultyRouter(router, rules), on_turn, metrics, environment)
        self._rules = rules
        self._bound: tuple[Address, ...] = ()
        self._accepted_sockets: dict[ClientSocket, AcceptedSocket] = {}

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
            opened = self.environment.listen(
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
            while (accepted := listening.accept(send_bytes=0)) is not None:
                accepted.close()
        if self._accepts:
            await asyncio.wait(list(self._accepts))
        for client in list(self._clients):
            client.abort()

    # Connections, by their sockets: a forked child has them as well.

    async def _connect(self, client: ClientSocket, accepted: AcceptedSocket) -> None:
        self._accepted_sockets[client] = accepted
        await super()._connect(client, accepted)

    def lost(self, client: ClientSocket) -> None:
        """Forget a connection."""
        self._accepted_sockets.pop(client, None)
        super().lost(client)

    def forget(self) -> None:
        """Close a forked child's copies: with them open, no connection would end in its parent."""
        for each in [*self._accepted_sockets.values(), *(each for each, _ in self._sockets)]:
            assert isinstance(each, AcceptedConnection | MachineSocket), (
                "a test's node is on a machine"
            )
            descriptor = each.socket.detach()
            if descriptor >= 0:
                os.close(descriptor)
