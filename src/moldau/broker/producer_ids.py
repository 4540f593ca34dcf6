"""Producer ids: from blocks that the controller gives out, so that no two brokers use the same."""

from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.broker.ports import ControllerPort
from moldau.controller.commands import AllocateProducerIds
from moldau.kernel.ids import ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

LEFT_MIN: Final = 100
"""The next block is asked for when fewer are left."""
WAITING_MAX: Final = 10_000
"""So many wait for a block; the others are told to come again."""

ProducerIdCallback = Callable[[ProducerId | None], None]


class ProducerIds:
    """The ids that this broker may give out, and who waits for more."""

    def __init__(self, controller: ControllerPort, identity: Callable[[], tuple[int, int]]) -> None:
        self._controller = controller
        self._identity = identity  # this broker's id and epoch
        self._ids = range(0)
        self._next_ids = range(0)
        self._waiting: deque[ProducerIdCallback] = deque()
        self._is_asking = False

    def take(self, then: ProducerIdCallback) -> None:
        """Give out an id, at once if there is one; None if there is none to be had now."""
        if len(self._waiting) >= WAITING_MAX:
            then(None)
            return
        self._waiting.append(then)
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            if not self._ids:
                self._ids, self._next_ids = self._next_ids, range(0)
            if not self._ids:
                break
            producer_id, self._ids = ProducerId(self._ids[0]), self._ids[1:]
            self._waiting.popleft()(producer_id)
        if not self._is_asking and not self._next_ids and len(self._ids) < LEFT_MIN:
            self._ask()

    def _ask(self) -> None:
        self._is_asking = True
        broker_id, broker_epoch = self._identity()
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        self._controller.submit(AllocateProducerIds(request), self._answered)

    def _answered(self, response: AllocateProducerIdsResponse | ErrorCode) -> None:
        self._is_asking = False
        if isinstance(response, ErrorCode) or response.error_code:
            # A client that waits may ask again, and that asks the controller again.
            waiting, self._waiting = self._waiting, deque()
            for then in waiting:
                then(None)
            return
        first = response.producer_id_start
        self._next_ids = range(first, first + response.producer_id_len)
        self._serve()
