"""The topics that the platform keeps its own state in."""

from typing import Final

OFFSETS: Final = "__consumer_offsets"
"""Groups, and the offsets that they have committed."""

TRANSACTION_STATE: Final = "__transaction_state"

SHARE_STATE: Final = "__share_group_state"

INTERNAL_TOPICS: Final = frozenset({OFFSETS, TRANSACTION_STATE, SHARE_STATE})

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id that may write to them all the same, as in Kafka."""
