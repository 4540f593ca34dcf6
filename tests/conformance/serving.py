"""What the broker under test must serve for a test to make sense."""

import pytest

from moldau.broker.served import HANDLERS
from tests.conformance.brokers import IS_APACHE

GROUPS = ("join_group", "offset_commit")
CONSUMER_GROUPS = ("consumer_group_heartbeat", "offset_commit")
SHARE_GROUPS = ("share_group_heartbeat", "share_fetch")
TRANSACTIONS = ("end_txn", "txn_offset_commit")


def needs(*apis: str) -> pytest.MarkDecorator:
    """Skip what the broker under test does not serve yet."""
    missing = set(apis) - {served.api.module for served in HANDLERS.values()}
    return pytest.mark.skipif(
        bool(missing) and not IS_APACHE, reason=f"not served yet: {', '.join(sorted(missing))}"
    )
