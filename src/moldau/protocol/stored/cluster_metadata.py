"""Records in __cluster_metadata."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    blob,
    boolean,
    field,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class BrokerEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class BrokerFeature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class RegisterBrokerRecord(Message, api_key=0, versions=(0, 4), flexible=0):
    broker_id: int = field(int32)
    is_migrating_zk_broker: bool = field(boolean, since=2)
    incarnation_id: Uuid = field(uuid)
    broker_epoch: int = field(int64)
    end_points: Sequence[BrokerEndpoint] = field(Array(BrokerEndpoint))
    features: Sequence[BrokerFeature] = field(Array(BrokerFeature))
    rack: str | None = field(string, nullable=0)
    fenced: bool = field(boolean, default=True)
    in_controlled_shutdown: bool = field(boolean, since=1)
    log_dirs: Sequence[Uuid] = field(Array(uuid), since=3, tag=0)
    cordoned_log_dirs: Sequence[Uuid] | None = field(
        Array(uuid), since=4, nullable=4, tag=1, default=None
    )


class UnregisterBrokerRecord(Message, api_key=1, versions=(0, 0), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64)


class TopicRecord(Message, api_key=2, versions=(0, 0), flexible=0):
    name: str = field(string)
    topic_id: Uuid = field(uuid)


class PartitionRecord(Message, api_key=3, versions=(0, 2), flexible=0):
    partition_id: int = field(int32, default=-1)
    topic_id: Uuid = field(uuid)
    replicas: Sequence[int] = field(Array(int32))
    isr: Sequence[int] = field(Array(int32))
    removing_replicas: Sequence[int] = field(Array(int32))
    adding_replicas: Sequence[int] = field(Array(int32))
    leader: int = field(int32, default=-1)
    leader_recovery_state: int = field(int8, tag=0)
    leader_epoch: int = field(int32, default=-1)
    partition_epoch: int = field(int32, default=-1)
    directories: Sequence[Uuid] = field(Array(uuid), since=1)
    eligible_leader_replicas: Sequence[int] | None = field(
        Array(int32), since=2, nullable=2, tag=1, default=None
    )
    last_known_elr: Sequence[int] | None = field(
        Array(int32), since=2, nullable=2, tag=2, default=None
    )


class ConfigRecord(Message, api_key=4, versions=(0, 0), flexible=0):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    name: str = field(string)
    value: str | None = field(string, nullable=0)


class PartitionChangeRecord(Message, api_key=5, versions=(0, 2), flexible=0):
    partition_id: int = field(int32, default=-1)
    topic_id: Uuid = field(uuid)
    isr: Sequence[int] | None = field(Array(int32), nullable=0, tag=0, default=None)
    leader: int = field(int32, tag=1, default=-2)
    replicas: Sequence[int] | None = field(Array(int32), nullable=0, tag=2, default=None)
    removing_replicas: Sequence[int] | None = field(Array(int32), nullable=0, tag=3, default=None)
    adding_replicas: Sequence[int] | None = field(Array(int32), nullable=0, tag=4, default=None)
    leader_recovery_state: int = field(int8, tag=5, default=-1)
    directories: Sequence[Uuid] | None = field(
        Array(uuid), since=1, nullable=1, tag=8, default=None
    )
    eligible_leader_replicas: Sequence[int] | None = field(
        Array(int32), since=2, nullable=2, tag=6, default=None
    )
    last_known_elr: Sequence[int] | None = field(
        Array(int32), since=2, nullable=2, tag=7, default=None
    )


class FenceBrokerRecord(Message, api_key=7, versions=(0, 0), flexible=0):
    id: int = field(int32)
    epoch: int = field(int64)


class UnfenceBrokerRecord(Message, api_key=8, versions=(0, 0), flexible=0):
    id: int = field(int32)
    epoch: int = field(int64)


class RemoveTopicRecord(Message, api_key=9, versions=(0, 0), flexible=0):
    topic_id: Uuid = field(uuid)


class DelegationTokenRecord(Message, api_key=10, versions=(0, 0), flexible=0):
    owner: str = field(string)
    requester: str = field(string)
    renewers: Sequence[str] = field(Array(string))
    issue_timestamp: int = field(int64)
    max_timestamp: int = field(int64)
    expiration_timestamp: int = field(int64)
    token_id: str = field(string)


class UserScramCredentialRecord(Message, api_key=11, versions=(0, 0), flexible=0):
    name: str = field(string)
    mechanism: int = field(int8)
    salt: bytes = field(blob)
    stored_key: bytes = field(blob)
    server_key: bytes = field(blob)
    iterations: int = field(int32)


class FeatureLevelRecord(Message, api_key=12, versions=(0, 0), flexible=0):
    name: str = field(string)
    feature_level: int = field(int16)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable=0)


class ClientQuotaRecord(Message, api_key=14, versions=(0, 0), flexible=0):
    entity: Sequence[EntityData] = field(Array(EntityData))
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


class ProducerIdsRecord(Message, api_key=15, versions=(0, 0), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    next_producer_id: int = field(int64)


class BrokerRegistrationChangeRecord(Message, api_key=17, versions=(0, 3), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64)
    fenced: int = field(int8, tag=0)
    in_controlled_shutdown: int = field(int8, since=1, tag=1)
    log_dirs: Sequence[Uuid] = field(Array(uuid), since=2, tag=2)
    cordoned_log_dirs: Sequence[Uuid] | None = field(
        Array(uuid), since=3, nullable=3, tag=3, default=None
    )


class AccessControlEntryRecord(Message, api_key=18, versions=(0, 0), flexible=0):
    id: Uuid = field(uuid)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class RemoveAccessControlEntryRecord(Message, api_key=19, versions=(0, 0), flexible=0):
    id: Uuid = field(uuid)


class NoOpRecord(Message, api_key=20, versions=(0, 0), flexible=0):
    pass


class ZkMigrationStateRecord(Message, api_key=21, versions=(0, 0), flexible=0):
    zk_migration_state: int = field(int8)


class RemoveUserScramCredentialRecord(Message, api_key=22, versions=(0, 0), flexible=0):
    name: str = field(string)
    mechanism: int = field(int8)


class BeginTransactionRecord(Message, api_key=23, versions=(0, 0), flexible=0):
    name: str | None = field(string, nullable=0, tag=0, default=None)


class EndTransactionRecord(Message, api_key=24, versions=(0, 0), flexible=0):
    pass


class AbortTransactionRecord(Message, api_key=25, versions=(0, 0), flexible=0):
    reason: str | None = field(string, nullable=0, tag=0, default=None)


class RemoveDelegationTokenRecord(Message, api_key=26, versions=(0, 0), flexible=0):
    token_id: str = field(string)


class ControllerEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class ControllerFeature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class RegisterControllerRecord(Message, api_key=27, versions=(0, 0), flexible=0):
    controller_id: int = field(int32)
    incarnation_id: Uuid = field(uuid)
    zk_migration_ready: bool = field(boolean)
    end_points: Sequence[ControllerEndpoint] = field(Array(ControllerEndpoint))
    features: Sequence[ControllerFeature] = field(Array(ControllerFeature))


class ClearElrRecord(Message, api_key=28, versions=(0, 0), flexible=0):
    topic_name: str = field(string)
