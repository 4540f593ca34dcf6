"""This broker's standing in the cluster: it registers, is unfenced, and leaves in good order."""

import logging
from collections.abc import Callable, Sequence

from moldau.controller.commands import BrokerHeartbeat, RegisterBroker, RegisterController
from moldau.kernel.ids import Offset
from moldau.metadata.features import CONTROLLER_REGISTRATIONS, OPENED
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.listeners import (
    PROTOCOLS,
    ListenerSetting,
    advertised_listeners_of,
    controller_listener_of,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import broker_registration, controller_registration
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest
from moldau.protocol.messages.controller_registration import ControllerRegistrationRequest
from moldau.runtime.controller_host import ControllerHost

logger = logging.getLogger(__name__)

# The numbers that Kafka has for them.
_PROTOCOL_IDS = {name: number for number, name in enumerate(PROTOCOLS)}
SHUTDOWN_HEARTBEATS_MAX = 10


class RegistrationRefusedError(Exception):
    """The controller does not take this node; one line for its operator."""


class Registration:
    """One broker in the cluster. With no other node, no heartbeat is needed to show that it lives;
    it sends them when something has changed.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        controller: ControllerHost,
        applied_offset: Callable[[], Offset],
    ) -> None:
        self._settings = settings
        self._cluster_id = cluster_id
        self._controller = controller
        self._applied_offset = applied_offset
        self._offline: dict[bytes, None] = {}
        self.broker_epoch = -1

    async def register(
        self,
        listeners: Sequence[ListenerSetting],
        log_dirs: Sequence[bytes],
        *,
        incarnation_id: bytes,
        previous_epoch: int,
    ) -> None:
        """Register this node as a broker and as a controller."""
        await self._register_controller(incarnation_id)
        request = BrokerRegistrationRequest(
            broker_id=self._settings.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=incarnation_id,
            listeners=[
                broker_registration.Listener(
                    name=each.name,
                    host=each.host or "localhost",
                    port=each.port,
                    security_protocol=_PROTOCOL_IDS[each.protocol],
                )
                for each in _advertised(self._settings, listeners)
            ],
            features=[
                broker_registration.Feature(
                    name=name,
                    min_supported_version=levels.lowest,
                    max_supported_version=levels.highest,
                )
                for name, levels in OPENED.items()
            ],
            rack=self._settings.broker_rack,
            log_dirs=list(log_dirs),
            previous_broker_epoch=previous_epoch,
        )
        answer = await self._controller.ask(RegisterBroker(request, 0))
        code = answer if isinstance(answer, ErrorCode) else answer.error_code
        if isinstance(answer, ErrorCode) or code:
            raise RegistrationRefusedError(f"the broker was not registered: {ErrorCode(code).name}")
        self.broker_epoch = answer.broker_epoch

    async def _register_controller(self, incarnation_id: bytes) -> None:
        if self._controller.controller.image.level < CONTROLLER_REGISTRATIONS:
            return
        listener = controller_listener_of(self._settings)
        request = ControllerRegistrationRequest(
            controller_id=self._settings.node_id,
            incarnation_id=incarnation_id,
            listeners=[
                controller_registration.Listener(
                    name=listener.name,
                    host=listener.host or "localhost",
                    port=listener.port,
                    security_protocol=_PROTOCOL_IDS[listener.protocol],
                )
            ],
            features=[
                controller_registration.Feature(
                    name=name,
                    min_supported_version=levels.lowest,
                    max_supported_version=levels.highest,
                )
                for name, levels in OPENED.items()
            ],
        )
        await self._controller.ask(RegisterController(request))

    async def unfence(self) -> None:
        """Serve from now on."""
        answer = await self._controller.ask(self._heartbeat())
        if isinstance(answer, ErrorCode) or answer.is_fenced:
            raise RegistrationRefusedError("the broker stays fenced")

    def directory_failed(self, directory_id: bytes) -> None:
        """Tell the controller that a log directory is offline."""
        self._offline[directory_id] = None
        if self.broker_epoch >= 0:
            self._controller.submit(self._heartbeat(), lambda _: None)

    async def leave(self) -> None:
        """Give up all leaderships, then the right to serve."""
        if self.broker_epoch < 0:
            return
        for _ in range(SHUTDOWN_HEARTBEATS_MAX):
            answer = await self._controller.ask(self._heartbeat(want_shut_down=True))
            if isinstance(answer, ErrorCode) or answer.error_code or answer.should_shut_down:
                return

    def _heartbeat(self, *, want_shut_down: bool = False) -> BrokerHeartbeat:
        request = BrokerHeartbeatRequest(
            broker_id=self._settings.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._applied_offset() - 1,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline),
        )
        return BrokerHeartbeat(request)


def _advertised(
    settings: BrokerSettings, listeners: Sequence[ListenerSetting]
) -> Sequence[ListenerSetting]:
    """Return where other nodes find this one: real ports, and names where they are set."""
    told = {each.name: each for each in advertised_listeners_of(settings) or ()}
    return [
        ListenerSetting(
            each.name, told[each.name].host, told[each.name].port or each.port, each.protocol
        )
        if each.name in told
        else each
        for each in listeners
    ]
