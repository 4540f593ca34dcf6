"""Records of the cluster image that are kept as they are: quotas, entries, credentials, tokens."""

from collections.abc import Hashable, Iterator

from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

KeptKey = tuple[Hashable, ...]


def key_of(record: Message) -> tuple[type[Message], KeptKey]:
    """Return which record is replaced or removed by this one: its type and its key there."""
    match record:
        case ClientQuotaRecord():
            # The parts of an entity have no order.
            entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
            return ClientQuotaRecord, (entity, record.key)
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return AccessControlEntryRecord, (record.id,)
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return UserScramCredentialRecord, (record.name, record.mechanism)
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return DelegationTokenRecord, (record.token_id,)
        case _:
            raise AssertionError(f"{type(record).__name__} is not kept")


class KeptRecords:
    """The latest record of every key, by type."""

    def __init__(self, records: dict[type[Message], dict[KeptKey, Message]] | None = None) -> None:
        self._records = records or {
            ClientQuotaRecord: {},
            AccessControlEntryRecord: {},
            UserScramCredentialRecord: {},
            DelegationTokenRecord: {},
        }

    def copy(self) -> "KeptRecords":
        """Return a copy that does not change with this one; records are shared."""
        return KeptRecords({cls: dict(records) for cls, records in self._records.items()})

    def replay(self, record: Message) -> None:
        """Keep a record, or drop the one that it removes."""
        cls, key = key_of(record)
        is_removal = not isinstance(record, cls) or getattr(record, "remove", False)
        if is_removal:
            self._records[cls].pop(key, None)
        else:
            self._records[cls][key] = record

    def records(self, cls: type[Message]) -> Iterator[Message]:
        """Return the records of one type."""
        return iter(self._records[cls].values())
