"""What transactions need to know from outside."""

from typing import Protocol

from moldau.metadata.settings.broker import BrokerSettings


class TransactionContext(Protocol):
    """The broker around a coordinator of transactions."""

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""

    @property
    def record_bytes_max(self) -> int:
        """How large the key and the value of a record may be, together."""

    @property
    def transaction_version(self) -> int:
        """The cluster's level of transaction.version."""
