"""Registered brokers and controllers of the cluster image.

A registration is kept as the record that would register it again, and replaced when it changes.
"""

from typing import Final, TypeVar

from moldau.metadata.errors import ReplayError
from moldau.metadata.topics import LOST, MIGRATING, UNASSIGNED
from moldau.protocol.schema import Struct
from moldau.protocol.stored.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)

# The values of `fenced` in a BrokerRegistrationChangeRecord; 0 leaves it as it is.
FENCE: Final = 1
UNFENCE: Final = -1
FENCING_STAYS: Final = 0
# The value of `in_controlled_shutdown` there; the way back is a new registration.
SHUT_DOWN: Final = 1

AnyStruct = TypeVar("AnyStruct", bound=Struct)


def is_active(broker: RegisterBrokerRecord | None) -> bool:
    """Whether a broker may lead partitions and be in sync."""
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def has_online_directory(broker: RegisterBrokerRecord, directory: bytes) -> bool:
    """Whether a replica's directory is one that its broker has online, as far as anybody knows."""
    if not broker.log_dirs or directory in (UNASSIGNED, MIGRATING):
        return directory != LOST
    return directory in broker.log_dirs


def altered(record: AnyStruct, **changes: object) -> AnyStruct:
    """Return a copy of a record with some fields changed."""
    cls = type(record)
    values = {field.name: getattr(record, field.name) for field in cls._fields}
    return cls(**(values | changes))


class Brokers:
    """The registered brokers, by id."""

    def __init__(self, by_id: dict[int, RegisterBrokerRecord] | None = None) -> None:
        self.by_id = by_id or {}

    def find(self, broker_id: int) -> RegisterBrokerRecord | None:
        """Return the registration of a broker."""
        return self.by_id.get(broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker may lead partitions and be in sync."""
        return is_active(self.by_id.get(broker_id))

    def copy(self) -> "Brokers":
        """Return a copy that does not change with this one; registrations are shared."""
        return Brokers(dict(self.by_id))

    def replay_registration(self, record: RegisterBrokerRecord) -> None:
        """Apply a registration, the first of a broker or a newer one."""
        self.by_id[record.broker_id] = record

    def replay_unregistration(self, broker_id: int, broker_epoch: int) -> None:
        """Apply the end of a registration."""
        self._get(broker_id, broker_epoch)
        del self.by_id[broker_id]

    def replay_fencing(self, broker_id: int, broker_epoch: int, *, fenced: bool) -> None:
        """Apply a change of `fenced` alone."""
        broker = self._get(broker_id, broker_epoch)
        self.by_id[broker_id] = altered(broker, fenced=fenced)

    def replay_change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Apply a change to a registration; what the record leaves out stays as it is."""
        broker = self._get(record.broker_id, record.broker_epoch)
        changes: dict[str, object] = {}
        if record.fenced != FENCING_STAYS:
            changes["fenced"] = record.fenced == FENCE
        if record.in_controlled_shutdown == SHUT_DOWN:
            changes["in_controlled_shutdown"] = True
        if record.log_dirs:
            changes["log_dirs"] = tuple(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            changes["cordoned_log_dirs"] = tuple(record.cordoned_log_dirs)
        self.by_id[record.broker_id] = altered(broker, **changes)

    def _get(self, broker_id: int, broker_epoch: int) -> RegisterBrokerRecord:
        broker = self.by_id.get(broker_id)
        if broker is None:
            raise ReplayError(f"broker {broker_id} changes, but is not registered")
        if broker.broker_epoch != broker_epoch:
            raise ReplayError(
                f"broker {broker_id} changes with epoch {broker_epoch},"
                f" but is registered with {broker.broker_epoch}"
            )
        return broker
