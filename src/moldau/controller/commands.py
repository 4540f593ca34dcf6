"""What the controller can be asked: Kafka's requests, with what has to come from outside."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from moldau.coordination.command import Command
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from moldau.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from moldau.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from moldau.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from moldau.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from moldau.protocol.schema import Message


@dataclass(frozen=True, slots=True)
class Activate(Command[None]):
    """Begin to decide: this node leads the quorum, and its log is replayed."""

    bootstrap: Sequence[Message]
    """What the cluster begins with if its log is empty."""


@dataclass(frozen=True, slots=True)
class CreateTopics(Command[CreateTopicsResponse]):
    """Create topics; 16 random bytes for each become its id."""

    request: CreateTopicsRequest
    entropy: bytes
    describable: Container[str] | None = None
    """The topics whose configs the client may see in the answer, all if None."""


@dataclass(frozen=True, slots=True)
class CreateMissingTopics(Command[CreateTopicsResponse]):
    """Create topics that a client asked about or a coordinator needs, with the usual settings."""

    names: Sequence[str]
    entropy: bytes


@dataclass(frozen=True, slots=True)
class RegisterBroker(Command[BrokerRegistrationResponse]):
    """Register a broker; its epoch is the offset that the next record will have."""

    request: BrokerRegistrationRequest
    next_offset: int


@dataclass(frozen=True, slots=True)
class UpdateFeatures(Command[UpdateFeaturesResponse]):
    """Change feature levels; the quorum knows the level of kraft.version."""

    request: UpdateFeaturesRequest
    kraft_version: int


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(Command[AllocateProducerIdsResponse]):
    """Reserve a block of producer ids for a broker."""

    request: AllocateProducerIdsRequest


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(Command[AlterClientQuotasResponse]):
    """Set and remove quotas of users, clients and addresses."""

    request: AlterClientQuotasRequest


@dataclass(frozen=True, slots=True)
class AlterConfigs(Command[AlterConfigsResponse]):
    """Set all configs of resources."""

    request: AlterConfigsRequest


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignments(Command[AlterPartitionReassignmentsResponse]):
    """Move replicas, or stop moving them."""

    request: AlterPartitionReassignmentsRequest


@dataclass(frozen=True, slots=True)
class AlterUserScramCredentials(Command[AlterUserScramCredentialsResponse]):
    """Set and delete what users prove themselves with."""

    request: AlterUserScramCredentialsRequest


@dataclass(frozen=True, slots=True)
class AssignDirectories(Command[AssignReplicasToDirsResponse]):
    """Hear from a broker in which of its log directories replicas are."""

    request: AssignReplicasToDirsRequest


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat(Command[BrokerHeartbeatResponse]):
    """Hear from a broker what it wants to be."""

    request: BrokerHeartbeatRequest


@dataclass(frozen=True, slots=True)
class RegisterController(Command[ControllerRegistrationResponse]):
    """Register a node of the quorum."""

    request: ControllerRegistrationRequest


@dataclass(frozen=True, slots=True)
class CreatePartitions(Command[CreatePartitionsResponse]):
    """Add partitions to topics."""

    request: CreatePartitionsRequest


@dataclass(frozen=True, slots=True)
class DeleteTopics(Command[DeleteTopicsResponse]):
    """Delete topics by name or id."""

    request: DeleteTopicsRequest


@dataclass(frozen=True, slots=True)
class ElectLeaders(Command[ElectLeadersResponse]):
    """Elect leaders of partitions."""

    request: ElectLeadersRequest


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs(Command[IncrementalAlterConfigsResponse]):
    """Change single configs of resources."""

    request: IncrementalAlterConfigsRequest


@dataclass(frozen=True, slots=True)
class UnregisterBroker(Command[UnregisterBrokerResponse]):
    """Forget a broker."""

    request: UnregisterBrokerRequest
