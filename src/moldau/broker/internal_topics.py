"""The topics that the platform keeps its own state in."""

from typing import Final

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id that may write to them all the same, as in Kafka."""
