"""The controller: decides commands against the cluster's image."""

from collections.abc import Callable
from typing import Any, Final

from moldau.controller import commands
from moldau.controller.alter_client_quotas import decide_alter_client_quotas
from moldau.controller.alter_configs import (
    decide_alter_configs,
    decide_incremental_alter_configs,
)
from moldau.controller.alter_scram_credentials import decide_alter_user_scram_credentials
from moldau.controller.assign_directories import decide_assign_directories
from moldau.controller.broker_lifecycle import (
    decide_heartbeat,
    decide_register_broker,
    decide_unregister_broker,
)
from moldau.controller.cluster import ConfigRules, ControlledCluster, ControllerSettings
from moldau.controller.create_partitions import decide_create_partitions
from moldau.controller.create_topics import decide_create_missing_topics, decide_create_topics
from moldau.controller.decision import MetadataDecision
from moldau.controller.delete_topics import decide_delete_topics
from moldau.controller.leaders import decide_alter_reassignments, decide_elect_leaders
from moldau.controller.producer_ids import decide_allocate_producer_ids
from moldau.controller.registrations import decide_activate, decide_register_controller
from moldau.controller.update_features import decide_update_features
from moldau.coordination.command import Answer, Command
from moldau.kernel.clock import Instant
from moldau.metadata.image import ClusterImage
from moldau.protocol.schema import Message


class Controller:
    """A coordinator over the metadata log: `decide` looks, `replay` changes.

    Records are appended and replayed at once, so that the next command sees them; the response
    waits until they are committed. If the append fails, the image is dropped and loaded again
    from the log. While the records of a decision are still being appended (a transaction of
    metadata), nothing else is decided.
    """

    def __init__(
        self, image: ClusterImage, settings: ControllerSettings, rules: ConfigRules
    ) -> None:
        self.cluster = ControlledCluster(image, settings, rules)

    @property
    def image(self) -> ClusterImage:
        """The cluster with all uncommitted changes."""
        return self.cluster.image

    def decide(self, command: Command[Answer], now: Instant) -> MetadataDecision[Answer]:  # noqa: ARG002
        """Decide a command; nothing changes until the records come back through `replay`."""
        is_activation = isinstance(command, commands.Activate)
        assert is_activation or not self.image.is_in_transaction, "a decision is half appended"
        decision: MetadataDecision[Answer] = _DECIDE[type(command)](self.cluster, command)
        return decision

    def replay(self, record: Message) -> None:
        """Apply a record of the metadata log."""
        self.image.replay(record)


def _of_request(
    decide: Callable[[ControlledCluster, Any], MetadataDecision[Any]],
) -> Callable[[ControlledCluster, Any], MetadataDecision[Any]]:
    """Make a decision about a request one about the command that carries nothing else."""
    return lambda cluster, command: decide(cluster, command.request)


_DECIDE: Final[
    dict[type[Command[Any]], Callable[[ControlledCluster, Any], MetadataDecision[Any]]]
] = {
    commands.Activate: decide_activate,
    commands.AllocateProducerIds: _of_request(decide_allocate_producer_ids),
    commands.AlterClientQuotas: _of_request(decide_alter_client_quotas),
    commands.AlterConfigs: _of_request(decide_alter_configs),
    commands.AlterPartitionReassignments: _of_request(decide_alter_reassignments),
    commands.AlterUserScramCredentials: _of_request(decide_alter_user_scram_credentials),
    commands.AssignDirectories: _of_request(decide_assign_directories),
    commands.CreateMissingTopics: decide_create_missing_topics,
    commands.CreatePartitions: _of_request(decide_create_partitions),
    commands.CreateTopics: decide_create_topics,
    commands.DeleteTopics: _of_request(decide_delete_topics),
    commands.ElectLeaders: _of_request(decide_elect_leaders),
    commands.BrokerHeartbeat: _of_request(decide_heartbeat),
    commands.IncrementalAlterConfigs: _of_request(decide_incremental_alter_configs),
    commands.RegisterBroker: decide_register_broker,
    commands.RegisterController: _of_request(decide_register_controller),
    commands.UnregisterBroker: _of_request(decide_unregister_broker),
    commands.UpdateFeatures: decide_update_features,
}
