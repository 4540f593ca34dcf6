"""The coordinator of groups: one machine for each partition of __consumer_offsets."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.groups.context import GroupContext
from moldau.groups.share import parts as share
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.schema import Message

if TYPE_CHECKING:
    from moldau.groups.group import Group


class GroupMachine:
    """All groups of a partition; a `coordination.machine.Machine`.

    What a command means is in the tables below: a function for each type of request or command,
    of record and of timer.
    """

    def __init__(self, context: GroupContext) -> None:
        self.context = context
        self.groups: dict[str, Group] = {}
        """Durable, like everything that `replay` changes."""

    def decide(self, command: object, ticket: Ticket, now: Instant) -> Decision:
        """Decide a request, or a command of the broker itself."""
        kind = type(command.request) if isinstance(command, Asked) else type(command)
        return _DECIDE[kind](self, command, ticket, now)

    def expire(self, key: Hashable, now: Instant) -> Decision:
        """Decide what follows from a timer; its key is a tuple of a type of its own."""
        return _EXPIRE[type(key)](self, key, now)

    def loaded(self, now: Instant) -> Decision:
        """Give members that were here before the restart the time to come back."""
        effects = [effect for begin in _LOADED for effect in begin(self, now)]
        return Decision(effects=effects)

    def replay(
        self, offset: Offset, producer_id: ProducerId, key: Message, value: Message | None
    ) -> None:
        """Apply a record."""
        _REPLAY[type(key)](self, offset, producer_id, key, value)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Have the offsets of a transaction count, or forget them."""
        raise NotImplementedError


_DECIDE: Final[dict[type[Any], Callable[..., Decision]]] = {
    **share.DECIDE,
}
"""By type of request or command: `(machine, command, ticket, now)`."""

_EXPIRE: Final[dict[type[Any], Callable[..., Decision]]] = {
    **share.EXPIRE,
}
"""By type of timer: `(machine, key, now)`."""

_REPLAY: Final[dict[type[Message], Callable[..., None]]] = {
    **share.REPLAY,
}
"""By type of key: `(machine, offset, producer_id, key, value)`."""

_LOADED: Final[tuple[Callable[..., Any], ...]] = (share.begin_sessions,)
"""What each part does when everything is replayed: `(machine, now)` gives effects."""
