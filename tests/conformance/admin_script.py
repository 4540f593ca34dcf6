"""One administrator's day: the same requests for any broker, each with a name for its answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import api_of
from moldau.protocol.messages import alter_configs as alter
from moldau.protocol.messages import incremental_alter_configs as incremental
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.create_acls import CreateAclsRequest
from moldau.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.messages.delete_acls import DeleteAclsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from moldau.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from moldau.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.list_config_resources import ListConfigResourcesRequest
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.schema import Message
from tests.wire import Wire, wait_for

UNKNOWN_ID: Final = b"?" * 16
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

# The first versions that Apache Kafka 4.3.1 serves, where it has dropped some that we serve.
FIRST: Final = {
    CreateTopicsRequest: 2,
    DeleteTopicsRequest: 1,
    DescribeConfigsRequest: 1,
    AlterReplicaLogDirsRequest: 1,
    DescribeLogDirsRequest: 1,
    DescribeAclsRequest: 1,
    CreateAclsRequest: 1,
    DeleteAclsRequest: 1,
    CreateDelegationTokenRequest: 1,
    RenewDelegationTokenRequest: 1,
    ExpireDelegationTokenRequest: 1,
    DescribeDelegationTokenRequest: 1,
}


class Administrator:
    """Asks, and writes down the answers."""

    def __init__(self, wire: Wire, directory: str) -> None:
        self.wire = wire
        self.directory = directory
        """The broker's only log directory."""
        self.answers: dict[str, Message] = {}

    def ask(self, name: str, request: Message, version: int | None = None) -> Any:
        """Ask in one version, the newest unless told."""
        version = type(request)._versions[1] if version is None else version
        label = f"{type(request).__name__} v{version}: {name}"
        assert label not in self.answers
        answer = self.call(request, version)
        self.answers[label] = answer
        return answer

    def ask_all(self, name: str, request: Message) -> None:
        """Ask in all versions that can say it."""
        first, last = type(request)._versions
        for version in range(FIRST.get(type(request), first), last + 1):
            try:
                request.encode(version)
            except ProtocolError:
                continue
            self.ask(name, request, version)

    def call(self, request: Message, version: int) -> Any:
        return self.wire.call(request, api_of(type(request)).response_class, version)

    def find(self, name: str) -> Any:
        topics = [MetadataRequestTopic(name=name)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return self.call(request, 12).topics[0]

    def wait_for_topic(self, name: str, partitions: int) -> None:
        """Apache Kafka's broker follows its controller a moment later."""
        wait_for(lambda: len(self.find(name).partitions) == partitions)

    def wait_for_config(self, resource_type: int, resource: str, name: str, value: str) -> None:
        def is_there() -> bool:
            configs = self.call(described(resource_type, resource, [name]), 4).results[0].configs
            return [config.value for config in configs] == [value]

        wait_for(is_there)


def administer(wire: Wire, directory: str) -> Mapping[str, Message]:
    """Do everything once; return the answers."""
    admin = Administrator(wire, directory)
    for part in (
        create_topics,
        create_partitions,
        metadata,
        describe_topic_partitions,
        describe_cluster,
        describe_configs,
        alter_topics_configs,
        alter_other_configs,
        alter_configs,
        list_config_resources,
        log_dirs,
        quorum_and_features,
        leaders,
        coordinators,
        telemetry,
        delete_topics,
    ):
        part(admin)
    return admin.answers


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def assigned(name: str, *pairs: tuple[int, Sequence[int]], partitions: int = -1) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in pairs
    ]
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=-1, assignments=assignments
    )


def create_topics(admin: Administrator) -> None:
    def create(name: str, *topics: CreatableTopic, **fields: Any) -> None:
        admin.ask(name, CreateTopicsRequest(topics=topics, **fields))

    for version in range(2, 8):
        request = CreateTopicsRequest(topics=[topic(f"created-{version}", 2, retention_ms="1000")])
        admin.ask("a topic", request, version)
        admin.ask("a topic again", request, version)
    create("the first", topic("a", 3))
    create("validated only", topic("b"), validate_only=True)
    create("named twice", topic("d"), topic("d"), topic("e"))
    create("defaults", topic("defaults", -1, -1))
    create("like an internal one", topic("__consumer_offsets", 1, 1, cleanup_policy="compact"))
    for partitions in (0, -2):
        create(f"{partitions} partitions", topic("f", partitions))
    for factor in (0, -2, 3):
        create(f"replication factor {factor}", topic("f", 1, factor))
    for name in ("f f", "", ".", "..", "x" * 250, "č", "__cluster_metadata"):
        create(f"called {name!r}", topic(name))
    create("with a dot", topic("dot.ted"))
    create("colliding", topic("dot_ted"))
    create("assigned", assigned("m", (1, [1]), (0, [1])))
    create("assigned and counted", assigned("m2", (0, [1]), partitions=1))
    for name, pairs in {
        "with a gap": [(1, [1])],
        "to nobody known": [(0, [2])],
        "to one twice": [(0, [1, 1])],
        "to nobody": [(0, [])],
        "twice": [(0, [1]), (0, [1])],
    }.items():
        create(f"assigned {name}", assigned("m2", *pairs))
    create("an unknown config", topic("cfg", nope="1"))
    create("a wrong value", topic("cfg", retention_ms="x"))
    create("a value out of range", topic("cfg", retention_ms="-2"))
    create("no value", topic("cfg", retention_ms=None))
    for timeout_ms in (0, -1):
        create(f"timeout {timeout_ms}", topic("late"), timeout_ms=timeout_ms)
    create("nothing")
    for name, partitions in {"a": 3, "e": 1, "defaults": 1, "m": 2, "dot.ted": 1}.items():
        admin.wait_for_topic(name, partitions)
    admin.wait_for_topic("__consumer_offsets", 1)


def create_partitions(admin: Administrator) -> None:
    def more(
        name: str, *wishes: tuple[str, int, Sequence[Sequence[int]] | None], **fields: Any
    ) -> None:
        topics = [
            CreatePartitionsTopic(
                name=topic,
                count=count,
                assignments=None
                if brokers is None
                else [CreatePartitionsAssignment(broker_ids=each) for each in brokers],
            )
            for topic, count, brokers in wishes
        ]
        admin.ask_all(name, CreatePartitionsRequest(topics=topics, timeout_ms=30_000, **fields))

    for count in (3, 1, 0, -1):
        more(f"{count} of 3", ("a", count, None))
    more("validated only", ("a", 4, None), validate_only=True)
    more("of an unknown topic", ("nope", 3, None))
    more("of a topic named twice", ("a", 4, None), ("a", 5, None))
    more("assigned, validated only", ("a", 4, [[1]]), validate_only=True)
    more("assigned to nobody known", ("a", 4, [[7]]))
    more("assigned too often", ("a", 4, [[1], [1]]))
    more("assigned too seldom", ("a", 4, []))
    more("assigned to one twice", ("a", 4, [[1, 1]]))
    more("of nothing")
    for version in range(4):
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="e", count=2 + version, assignments=None)],
            timeout_ms=30_000,
        )
        admin.ask("one more", request, version)
    admin.wait_for_topic("e", 5)


def metadata(admin: Administrator) -> None:
    def named(*names: str | None, **fields: Any) -> MetadataRequest:
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            **{"allow_auto_topic_creation": False} | fields,
        )

    admin.ask("all", MetadataRequest(topics=[]), 0)
    admin.ask_all("all", MetadataRequest(topics=None))
    admin.ask_all("none or all", MetadataRequest(topics=[]))
    admin.ask_all("by name", named("a", "nope", "a", "f f", "", "__consumer_offsets"))
    admin.ask_all(
        "with operations",
        named("a", "nope", include_topic_authorized_operations=True),
    )
    every = {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    admin.ask_all("with all operations", named("a", **every))
    known = admin.find("a").topic_id
    by_id = [MetadataRequestTopic(name=None, topic_id=each) for each in (known, UNKNOWN_ID)]
    for version in (12, 13):
        admin.ask("by id", MetadataRequest(topics=by_id), version)
    admin.ask(
        "by id, too early",
        MetadataRequest(topics=[MetadataRequestTopic(name="a", topic_id=known)]),
        11,
    )
    admin.ask("nameless", named(None), 10)
    admin.ask("created now", named("automatic", allow_auto_topic_creation=True))
    admin.wait_for_topic("automatic", 1)
    admin.ask("created before", named("automatic", allow_auto_topic_creation=True))
    admin.ask("names that cannot be created", named("f f", "", allow_auto_topic_creation=True))
    admin.ask("the cluster's own", named("__cluster_metadata", allow_auto_topic_creation=True))


def describe_topic_partitions(admin: Administrator) -> None:
    def ask(name: str, *names: str, at: tuple[str, int] | None = None, limit: int = 2000) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=each) for each in names],
            response_partition_limit=limit,
            cursor=None if at is None else Cursor(topic_name=at[0], partition_index=at[1]),
        )
        admin.ask(name, request)

    ask("all")
    ask("a page of all", limit=4)
    ask("the rest of all", at=("a", 1))
    ask("some", "e", "a", "nope", "f f", "a")
    ask("a page inside a topic", "a", limit=2)
    ask("a page that ends with a topic", "a", "e", limit=3)
    ask("a second page", "a", "e", at=("a", 2), limit=2)
    ask("an empty page", "a", limit=0)
    ask("a cursor behind the end", "a", at=("a", 9))
    ask("a cursor behind all", at=("zzz", 0))
    ask("a cursor elsewhere", "a", at=("b", 0))
    ask("a cursor below", "a", at=("a", -1))


def describe_cluster(admin: Administrator) -> None:
    admin.ask_all("plain", DescribeClusterRequest())
    admin.ask_all("operations", DescribeClusterRequest(include_cluster_authorized_operations=True))
    admin.ask_all("fenced", DescribeClusterRequest(include_fenced_brokers=True))
    for endpoint_type in (0, 2, 3):
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        admin.ask_all(f"endpoint type {endpoint_type}", request)


def described(
    resource_type: int, name: str, keys: Sequence[str] | None = None, **fields: Any
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=keys
    )
    return DescribeConfigsRequest(resources=[resource], **fields)


def describe_configs(admin: Administrator) -> None:
    admin.ask_all("a topic", described(TOPIC, "a"))
    admin.ask_all("no names", described(TOPIC, "a", []))
    admin.ask_all("a topic with synonyms", described(TOPIC, "created-7", include_synonyms=True))
    admin.ask_all("some of a topic", described(TOPIC, "a", ["segment.ms", "nope"]))
    admin.ask_all("all brokers", described(BROKER, "", include_synonyms=True))
    names = ["num.partitions", "log.retention.ms", "min.insync.replicas", "ssl.key.password"]
    admin.ask_all("some of a broker", described(BROKER, "1", names, include_synonyms=True))
    admin.ask_all("a logger", described(LOGGER, "1", ["root"]))
    admin.ask_all("a group", described(GROUP, "readers", include_synonyms=True))
    admin.ask_all("client metrics", described(METRICS, "m", include_synonyms=True))
    for resource_type, name in (
        (TOPIC, "nope"),
        (TOPIC, "f f"),
        (TOPIC, ""),
        (BROKER, "2"),
        (BROKER, "x"),
        (LOGGER, ""),
        (LOGGER, "2"),
        (METRICS, ""),
        (GROUP, ""),
        (0, "a"),
        (64, "a"),
    ):
        admin.ask(f"type {resource_type} called {name!r}", described(resource_type, name))
    mixed = described(TOPIC, "a", ["segment.ms"])
    mixed.resources = [*mixed.resources, *described(TOPIC, "a", ["retention.ms"]).resources]
    admin.ask("a topic twice", mixed)
    mixed.resources = [*mixed.resources, *described(3, "a").resources]
    admin.ask("an unknown type among others", mixed)


Change = tuple[str, int, str | None]


def changed(resource_type: int, name: str, *changes: Change) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=config, config_operation=operation, value=value)
            for config, operation, value in changes
        ],
    )


def _changer(admin: Administrator) -> Callable[..., None]:
    def change(name: str, *resources: incremental.AlterConfigsResource, **fields: Any) -> None:
        request = incremental.IncrementalAlterConfigsRequest(resources=resources, **fields)
        admin.ask_all(name, request)

    return change


def alter_topics_configs(admin: Administrator) -> None:
    change = _changer(admin)
    change("set", changed(TOPIC, "a", ("retention.ms", SET, "5000")))
    change("appended", changed(TOPIC, "a", ("cleanup.policy", APPEND, "compact")))
    admin.wait_for_config(TOPIC, "a", "cleanup.policy", "delete,compact")
    change("subtracted", changed(TOPIC, "a", ("cleanup.policy", SUBTRACT, "delete")))
    change("no list", changed(TOPIC, "a", ("retention.ms", APPEND, "1")))
    change("validated only", changed(TOPIC, "a", ("retention.ms", SET, "7")), validate_only=True)
    change("a wrong value", changed(TOPIC, "a", ("retention.ms", SET, "x")))
    change("no value", changed(TOPIC, "a", ("retention.ms", SET, None)))
    change("unknown", changed(TOPIC, "a", ("nope", SET, "x")))
    change("unknown, deleted", changed(TOPIC, "a", ("nope", DELETE, None)))
    change("twice", changed(TOPIC, "a", ("segment.ms", SET, "1"), ("segment.ms", SET, "2")))
    change("nothing", changed(TOPIC, "a"))
    change("of no topic", changed(TOPIC, "nope", ("retention.ms", SET, "1")))
    change("of all topics", changed(TOPIC, "", ("retention.ms", SET, "1")))
    change("of an impossible topic", changed(TOPIC, "f f", ("retention.ms", SET, "1")))
    change("a topic twice", changed(TOPIC, "a"), changed(TOPIC, "a"), changed(TOPIC, "e"))
    admin.wait_for_config(TOPIC, "a", "cleanup.policy", "compact")
    admin.ask("a changed topic", described(TOPIC, "a", include_synonyms=True))
    change("deleted", changed(TOPIC, "a", ("retention.ms", DELETE, None)))
    admin.wait_for_config(TOPIC, "a", "retention.ms", "604800000")


def alter_other_configs(admin: Administrator) -> None:
    change = _changer(admin)
    retention = ("log.retention.ms", SET, "5000000")
    change("for all brokers", changed(BROKER, "", retention))
    change("for a broker", changed(BROKER, "1", ("message.max.bytes", SET, "2000000")))
    admin.wait_for_config(BROKER, "1", "log.retention.ms", "5000000")
    admin.wait_for_config(BROKER, "1", "message.max.bytes", "2000000")
    names = ["log.retention.ms", "message.max.bytes", "log.retention.hours"]
    admin.ask("a changed broker", described(BROKER, "1", names, include_synonyms=True))
    admin.ask("changed brokers", described(BROKER, "", include_synonyms=True))
    names = ["retention.ms", "max.message.bytes"]
    admin.ask("a topic of a changed broker", described(TOPIC, "a", names, include_synonyms=True))
    for name in ("2", "x"):
        change(f"for broker {name}", changed(BROKER, name, retention))
    change("read-only for all", changed(BROKER, "", ("node.id", SET, "7")))
    change("read-only for one", changed(BROKER, "1", ("node.id", SET, "7")))
    change("only for one", changed(BROKER, "", ("listeners", SET, "PLAINTEXT://:1")))
    change("a broker's wrong value", changed(BROKER, "", ("log.retention.ms", SET, "x")))
    change("an unknown operation", changed(BROKER, "", ("log.retention.ms", 9, "1")))
    change("for all brokers, deleted", changed(BROKER, "", ("log.retention.ms", DELETE, None)))
    change("for a broker, deleted", changed(BROKER, "1", ("message.max.bytes", DELETE, None)))
    change("cluster's own, deleted", changed(BROKER, "", ("min.insync.replicas", DELETE, None)))
    change("cluster's own, of one", changed(BROKER, "1", ("min.insync.replicas", SET, "1")))
    admin.wait_for_config(BROKER, "1", "message.max.bytes", "1048588")
    change("an unknown logger", changed(LOGGER, "1", ("no.such.logger", SET, "INFO")))
    change("an unknown level", changed(LOGGER, "1", ("root", SET, "LOUD")))
    change("a logger", changed(LOGGER, "1", ("root", SET, "INFO")))
    change("the root's level, deleted", changed(LOGGER, "1", ("root", DELETE, None)))
    change("a logger elsewhere", changed(LOGGER, "2", ("root", SET, "INFO")))
    change("a logger nowhere", changed(LOGGER, "", ("root", SET, "INFO")))
    metrics = (("interval.ms", SET, "1000"), ("metrics", SET, "org.apache.kafka.,x"))
    change("client metrics", changed(METRICS, "m", *metrics))
    change("a short interval", changed(METRICS, "m", ("interval.ms", SET, "1")))
    change("an unknown metrics config", changed(METRICS, "m", ("nope", SET, "1")))
    change("a strange rule", changed(METRICS, "m", ("match", SET, "zz=1")))
    change("nameless metrics", changed(METRICS, "", ("interval.ms", SET, "1000")))
    timeout = ("consumer.session.timeout.ms", SET, "46000")
    change("a group", changed(GROUP, "readers", timeout))
    for value in ("1", "44999", "60001"):
        out_of_range = changed(GROUP, "readers", ("consumer.session.timeout.ms", SET, value))
        change(f"a group's {value}", out_of_range)
    change("a group's locks", changed(GROUP, "g", ("share.partition.max.record.locks", SET, "1")))
    change("a group's spares", changed(GROUP, "g", ("streams.num.standby.replicas", SET, "3")))
    change("an unknown group config", changed(GROUP, "readers", ("nope", SET, "1")))
    change("a nameless group", changed(GROUP, "", timeout))
    for resource_type in (0, 3, 64):
        change(f"type {resource_type}", changed(resource_type, "a", ("x", SET, "y")))
    admin.wait_for_config(METRICS, "m", "interval.ms", "1000")
    admin.wait_for_config(GROUP, "readers", timeout[0], "46000")
    admin.ask("changed client metrics", described(METRICS, "m", include_synonyms=True))
    admin.ask("a changed group", described(GROUP, "readers", include_synonyms=True))


def alter_configs(admin: Administrator) -> None:
    def put(
        name: str, resource_type: int, resource: str, *pairs: tuple[str, str | None], **fields: Any
    ) -> None:
        configs = [alter.AlterableConfig(name=key, value=value) for key, value in pairs]
        wish = alter.AlterConfigsResource(
            resource_type=resource_type, resource_name=resource, configs=configs
        )
        admin.ask_all(name, alter.AlterConfigsRequest(resources=[wish], **fields))

    put("a topic", TOPIC, "a", ("retention.ms", "9000"))
    put("a topic, validated only", TOPIC, "a", validate_only=True)
    put("no value", TOPIC, "a", ("retention.ms", None))
    put("unknown", TOPIC, "a", ("nope", "1"))
    put("twice", TOPIC, "a", ("retention.ms", "1"), ("retention.ms", "1"))
    put("of no topic", TOPIC, "nope", ("retention.ms", "1"))
    put("all brokers", BROKER, "", ("log.retention.ms", "1"))
    put("read-only", BROKER, "1", ("node.id", "2"))
    put("another broker", BROKER, "2", ("log.retention.ms", "1"))
    put("a logger", LOGGER, "1", ("root", "INFO"))
    put("client metrics", METRICS, "m", ("interval.ms", "2000"))
    put("a group", GROUP, "readers", ("consumer.session.timeout.ms", "47000"))
    put("an unknown type", 1, "x")
    admin.wait_for_config(TOPIC, "a", "retention.ms", "9000")
    admin.ask("a topic set anew", described(TOPIC, "a", ["retention.ms", "cleanup.policy"]))


def list_config_resources(admin: Administrator) -> None:
    admin.ask_all("all", ListConfigResourcesRequest())
    for types in ([TOPIC], [BROKER], [LOGGER], [METRICS, GROUP], [METRICS, METRICS], [0], [3]):
        admin.ask(f"types {types}", ListConfigResourcesRequest(resource_types=types), 1)


def log_dirs(admin: Administrator) -> None:
    admin.ask_all("all", DescribeLogDirsRequest(topics=None))
    admin.ask_all("none", DescribeLogDirsRequest(topics=[]))
    wanted = [DescribableLogDirTopic(topic="a", partitions=[0, 2, 9])]
    admin.ask_all("some", DescribeLogDirsRequest(topics=wanted))
    for name, path, topic_name, index in (
        ("unknown", "/nowhere", "a", 0),
        ("relative", "data", "a", 0),
        ("the same", admin.directory, "a", 0),
        ("no topic", admin.directory, "nope", 0),
        ("no partition", admin.directory, "a", 9),
        ("too long a name", admin.directory, "x" * 249, 0),
    ):
        wish = AlterReplicaLogDirTopic(name=topic_name, partitions=[index])
        place = AlterReplicaLogDir(path=path, topics=[wish])
        admin.ask_all(name, AlterReplicaLogDirsRequest(dirs=[place]))


def quorum_and_features(admin: Administrator) -> None:
    def features(name: str) -> None:
        """Ask for the features; what 4.4 adds to those of 4.3.1 is another test's."""
        for version in (3, 4):
            answer = admin.ask(name, software, version)
            answer.api_keys = ()
            for feature in answer.supported_features:
                feature.max_version = 0

    software = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    features("features")

    def quorum(name: str, *asked: tuple[str, Sequence[int]]) -> None:
        topics = [
            DescribeQuorumRequestTopicData(
                topic_name=topic,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=i) for i in indexes],
            )
            for topic, indexes in asked
        ]
        admin.ask_all(name, DescribeQuorumRequest(topics=topics))

    quorum("the quorum", ("__cluster_metadata", [0]))
    quorum("another partition", ("__cluster_metadata", [1]))
    quorum("another topic", ("a", [0]))
    quorum("two", ("__cluster_metadata", [0]), ("a", [0]))

    def update(name: str, *updates: tuple[str, int, int], **fields: Any) -> None:
        keys = [
            FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
            for feature, level, kind in updates
        ]
        admin.ask_all(name, UpdateFeaturesRequest(feature_updates=keys, **fields))

    update("nothing")
    update("unknown", ("nope", 1, 1))
    update("too high", ("metadata.version", 99, 1))
    update("a downgrade", ("metadata.version", 7, 1))
    update("a safe downgrade", ("metadata.version", 7, 2))
    update("an unsafe downgrade", ("metadata.version", 7, 3))
    update("an unknown kind", ("metadata.version", 30, 9))
    update("the same", ("metadata.version", 30, 1))
    update("below zero", ("metadata.version", -1, 1))
    update("validated only", ("group.version", 0, 2), validate_only=True)
    update("all or none", ("group.version", 1, 1), ("nope", 1, 1))
    update("the quorum's", ("kraft.version", 1, 1))
    update("the quorum's, down", ("kraft.version", 0, 3))
    update("the quorum's, down, not said so", ("kraft.version", 0, 1))
    update("unknown and 0", ("nope", 0, 1))
    update("too low", ("metadata.version", 3, 3))
    update("a downgrade that is not said to be one", ("group.version", 0, 1))
    update("too high a level of another", ("transaction.version", 3, 1))
    update("an unknown kind, 0", ("metadata.version", 30, 0))
    update("no time", ("group.version", 1, 1), timeout_ms=0)
    update("twice", ("group.version", 1, 1), ("group.version", 1, 1))
    update("lowered", ("transaction.version", 1, 2))
    update("raised by a downgrade", ("transaction.version", 2, 2))
    update("raised by an unsafe downgrade", ("transaction.version", 2, 3))
    update("raised", ("transaction.version", 2, 1))
    features("features with the quorum's")
    for broker_id in (7, -1):
        admin.ask(f"broker {broker_id}", UnregisterBrokerRequest(broker_id=broker_id))


def leaders(admin: Administrator) -> None:
    def elect(name: str, asked: Sequence[tuple[str, Sequence[int]]] | None, **fields: Any) -> None:
        wanted = (
            None
            if asked is None
            else [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in asked]
        )
        admin.ask_all(name, ElectLeadersRequest(topic_partitions=wanted, **fields))

    elect("preferred", [("a", [0, 9]), ("nope", [0])])
    elect("all", None)
    elect("none", [])
    elect("unclean", [("a", [0])], election_type=1)
    elect("unknown", [("a", [0])], election_type=2)
    elect("all, unknown", None, election_type=2)
    elect("no time", [("a", [0])], timeout_ms=0)

    def move(name: str, topic: str, index: int, replicas: Sequence[int] | None, **f: Any) -> None:
        partition = ReassignablePartition(partition_index=index, replicas=replicas)
        wish = ReassignableTopic(name=topic, partitions=[partition])
        admin.ask_all(name, AlterPartitionReassignmentsRequest(topics=[wish], **f))

    move("to where it is", "a", 0, [1])
    move("to nobody known", "a", 0, [2])
    move("back", "a", 0, None)
    move("to nobody", "a", 0, [])
    move("to one twice", "a", 0, [1, 1])
    move("an unknown partition", "a", 9, [1])
    move("an unknown topic", "nope", 0, [1])
    admin.ask_all("all", ListPartitionReassignmentsRequest())
    some = [ListPartitionReassignmentsTopics(name="a", partition_indexes=[0, 9])]
    admin.ask_all("some", ListPartitionReassignmentsRequest(topics=some))


def coordinators(admin: Administrator) -> None:
    for version in range(1, 7):
        keys = {"key": "k"} if version < 4 else {"coordinator_keys": ["k"]}
        for key_type in (2, 9):
            request = FindCoordinatorRequest(key_type=key_type, **keys)
            admin.ask(f"key type {key_type}", request, version)


def telemetry(admin: Administrator) -> None:
    """Apache Kafka serves it without a receiver of metrics too, but does not say so."""
    client = b"a-test's-client!"
    change = incremental.IncrementalAlterConfigsRequest(
        resources=[changed(METRICS, "m", ("metrics", SET, "org.apache.kafka.,x"))]
    )
    admin.ask("metrics of clients", change)
    admin.wait_for_config(METRICS, "m", "metrics", "org.apache.kafka.,x")

    def push(name: str, **fields: Any) -> None:
        wish = PushTelemetryRequest(**{"client_instance_id": client} | fields)
        admin.ask(name, wish)

    admin.ask("a new client", GetTelemetrySubscriptionsRequest())
    question = GetTelemetrySubscriptionsRequest(client_instance_id=client)
    subscription_id = admin.ask("a known client", question).subscription_id
    admin.ask("too soon", question)
    push("no client", client_instance_id=bytes(16))
    push("a reserved id", client_instance_id=bytes(15) + b"\x01")
    push("nothing", subscription_id=subscription_id)
    push("too soon", subscription_id=subscription_id)
    push("the last", subscription_id=subscription_id, terminating=True)
    push("after the last", subscription_id=subscription_id)
    push("an unknown subscription", client_instance_id=b"another's client")


def delete_topics(admin: Administrator) -> None:
    def delete(name: str, *topics: DeleteTopicState, **fields: Any) -> None:
        request = DeleteTopicsRequest(topics=topics, **{"timeout_ms": 30_000} | fields)
        admin.ask(name, request)

    known = admin.find("a").topic_id
    delete("unknown", DeleteTopicState(name="nope"))
    delete("impossible", DeleteTopicState(name="f f"))
    delete("unknown id", DeleteTopicState(topic_id=UNKNOWN_ID))
    delete("neither", DeleteTopicState())
    delete("both", DeleteTopicState(name="a", topic_id=known))
    delete("twice", DeleteTopicState(name="a"), DeleteTopicState(name="a"))
    delete("an id twice", *[DeleteTopicState(topic_id=UNKNOWN_ID)] * 2)
    delete("nothing")
    delete("no time", DeleteTopicState(name="a"), timeout_ms=0)
    for version in range(1, 6):
        names = [f"created-{version + 1}", "nope"]
        admin.ask("by name", DeleteTopicsRequest(topic_names=names, timeout_ms=30_000), version)
    delete("by id", DeleteTopicState(topic_id=known))
    wait_for(lambda: admin.find("a").error_code != 0)
    delete("again", DeleteTopicState(topic_id=known))
