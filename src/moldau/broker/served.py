"""The APIs that a broker serves: nothing else is advertised, and nothing else is answered."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from moldau.protocol.apis import APIS, Api

Handler = Callable[..., Any]
"""`(broker, call, request) -> response | None`; Produce gets a buffer and a frame instead."""

# One line for each: `handlers/<name>.py` has `handle_<name>`.
_HANDLERS: Final = (
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "alter_client_quotas",
    "alter_configs",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "alter_share_group_offsets",
    "alter_user_scram_credentials",
    "api_versions",
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "create_acls",
    "create_delegation_token",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_groups",
    "delete_records",
    "delete_share_group_offsets",
    "delete_share_group_state",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_cluster",
    "describe_configs",
    "describe_delegation_token",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_quorum",
    "describe_share_group_offsets",
    "describe_topic_partitions",
    "describe_transactions",
    "describe_user_scram_credentials",
    "elect_leaders",
    "end_txn",
    "expire_delegation_token",
    "fetch",
    "find_coordinator",
    "get_telemetry_subscriptions",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "initialize_share_group_state",
    "join_group",
    "leave_group",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_partition_reassignments",
    "list_transactions",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "push_telemetry",
    "read_share_group_state",
    "read_share_group_state_summary",
    "renew_delegation_token",
    "share_acknowledge",
    "share_fetch",
    "share_group_describe",
    "share_group_heartbeat",
    "sync_group",
    "txn_offset_commit",
    "unregister_broker",
    "update_features",
    "write_share_group_state",
    "write_txn_markers",
)


# The version of InitProducerId for two-phase commit, which is off unless a setting says so.
_WITH_UNSTABLE: Final = frozenset({"init_producer_id"})


class Served:
    """One API that is served, in all its declared stable versions; few in all that there are."""

    __slots__ = ("api", "attempt", "first", "handler", "last")

    def __init__(self, api: Api, handler: Handler | None = None) -> None:
        self.api = api
        self.first = api.first
        self.last = api.last if api.module in _WITH_UNSTABLE else api.last_stable
        self.attempt: Callable[..., bool] | None = None
        """Handles what is usual from its frame, and declines all else, once it is imported."""
        self.handler = handler or self._handle_first
        """The function that handles its requests, by default imported when it is first needed."""

    def _handle_first(self, *arguments: Any) -> Any:
        self.load()
        return self.handler(*arguments)

    def load(self) -> None:
        """Import the handler."""
        name = self.api.module
        module = import_module(f"moldau.broker.handlers.{name}")
        self.handler = getattr(module, f"handle_{name}")
        self.attempt = getattr(module, f"try_{name}", None)


HANDLERS: Final[Mapping[int, Served]] = {
    api.key: Served(api) for api in APIS if api.module in _HANDLERS
}
"""By API key, in order."""

_FOR_METRICS: Final = frozenset({"get_telemetry_subscriptions", "push_telemetry"})


def advertised_apis(*, has_metrics: bool) -> Sequence[Served]:
    """Return what clients are told of: to push metrics only where this broker serves them.

    So does Kafka. Some clients begin to push, and say so, as soon as they are let.
    """
    return [
        each for each in HANDLERS.values() if has_metrics or each.api.module not in _FOR_METRICS
    ]
