"""The metadata that Apache Kafka 4.3.1 writes, read by us; its verdicts, compared with ours."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from moldau.consensus.quorum_state import Election, parse_quorum_state, render_quorum_state
from moldau.consensus.voters import IN_SNAPSHOT, VoterHistory
from moldau.controller import commands
from moldau.controller.commands import BrokerHeartbeat, CreateTopics
from moldau.controller.controller import Controller
from moldau.coordination.command import Command
from moldau.kernel.snapshot_id import find_snapshot_id
from moldau.kernel.uuid_text import uuid_from_text
from moldau.metadata.batches import encode_records, replayable
from moldau.metadata.bootstrap import BOOTSTRAP_FILE, bootstrap_records
from moldau.metadata.brokers import UNFENCE
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.image import ClusterImage
from moldau.metadata.record_frame import decode_record
from moldau.metadata.snapshot import read_snapshot
from moldau.protocol.messages import incremental_alter_configs
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from moldau.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from moldau.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from moldau.protocol.schema import Message, Struct
from moldau.protocol.stored.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.conformance.apache_kafka import apache_kafka
from tests.conformance.test_metadata_image import canonical
from tests.unit.controller.cluster import NOW, Rules, TestCluster

LEVEL = 30
METADATA_LOG = "__cluster_metadata-0"


def creation(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Iterable[tuple[int, list[int]]] = (),
    configs: Iterable[tuple[str, str | None]] = (),
) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )
    return CreateTopicsRequest(topics=[topic])


def growth(name: str, count: int, assignments: list[list[int]] | None = None) -> Message:
    asked = None
    if assignments is not None:
        asked = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=asked)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)


def config(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Message:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=key, config_operation=operation, value=value
            )
            for key, operation, value in changes
        ],
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def deletion(*topics: DeleteTopicState) -> Message:
    return DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


def move(name: str, index: int, replicas: list[int] | None) -> Message:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topic = ReassignableTopic(name=name, partitions=[partition])
    return AlterPartitionReassignmentsRequest(topics=[topic])


def features(*updates: tuple[str, int, int]) -> Message:
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ]
    )


def election(kind: int, partitions: dict[str, list[int]] | None) -> Message:
    asked = None
    if partitions is not None:
        asked = [TopicPartitions(topic=name, partitions=each) for name, each in partitions.items()]
    return ElectLeadersRequest(election_type=kind, topic_partitions=asked)


# Requests that both are asked in this order; what one leaves behind the next one meets.
ODD_REQUESTS: list[Message] = [
    *map(creation, ["", ".", "..", "a" * 249, "a" * 250, "ok.name", "ok_name", "ok.name"]),
    *map(creation, ["bad name", "bad/name", "ümlaut", "__cluster_metadata", "a.b_c", "a_b.c"]),
    creation("p0", 0),
    creation("p-2", -2),
    creation("f0", 1, 0),
    creation("f-2", 1, -2),
    creation("f2", 1, 2),
    creation("both-wrong", 0, 0),
    creation("defaults", -1, -1),
    creation("assigned", -1, -1, [(1, [1]), (0, [1])]),
    creation("counted", 1, -1, [(0, [1])]),
    creation("replicated", -1, 1, [(0, [1])]),
    creation("twice", -1, -1, [(0, [1]), (0, [1])]),
    creation("gap", -1, -1, [(1, [1])]),
    creation("nowhere", -1, -1, [(0, [])]),
    creation("stranger", -1, -1, [(0, [2])]),
    creation("doubled", -1, -1, [(0, [1, 1])]),
    creation("configured", configs=[("retention.ms", "1000"), ("min.insync.replicas", "1")]),
    creation("unknown-config", configs=[("no.such", "1")]),
    creation("null-config", configs=[("retention.ms", None)]),
    creation("bad-config", configs=[("retention.ms", "soon")]),
    growth("missing", 3),
    growth("ok.name", 1),
    growth("ok.name", 0),
    growth("ok.name", -1),
    growth("ok.name", 3),
    growth("ok.name", 5, [[1]]),
    growth("ok.name", 4, [[2]]),
    growth("ok.name", 4, [[]]),
    growth("ok.name", 4, [[1, 1]]),
    growth("ok.name", 4, []),
    growth("ok.name", 4, [[1]]),
    config(2, "ok.name", ("retention.ms", 0, "1000")),
    config(2, "ok.name", ("retention.ms", 0, "soon")),
    config(2, "ok.name", ("retention.ms", 0, None)),
    config(2, "ok.name", ("retention.ms", 2, "1")),
    config(2, "ok.name", ("cleanup.policy", 2, "compact")),
    config(2, "ok.name", ("cleanup.policy", 3, "delete")),
    config(2, "ok.name", ("no.such", 0, "1")),
    config(2, "ok.name", ("no.such", 1, None)),
    config(2, "ok.name", ("retention.ms", 0, "1"), ("retention.ms", 0, "2")),
    config(2, "ok.name", ("retention.ms", 1, None)),
    config(2, "missing", ("retention.ms", 0, "1000")),
    config(2, "", ("retention.ms", 0, "1000")),
    config(2, "bad name", ("retention.ms", 0, "1000")),
    config(4, "", ("log.retention.ms", 0, "600000")),
    config(4, "1", ("log.retention.ms", 0, "600000")),
    config(4, "2", ("log.retention.ms", 0, "600000")),
    config(4, "x", ("log.retention.ms", 0, "600000")),
    config(4, "", ("min.insync.replicas", 1, None)),
    config(4, "", ("min.insync.replicas", 0, "1")),
    config(16, "metrics", ("interval.ms", 0, "5000")),
    config(16, "", ("interval.ms", 0, "5000")),
    config(32, "group", ("consumer.session.timeout.ms", 0, "50000")),
    config(32, "", ("consumer.session.timeout.ms", 0, "50000")),
    config(7, "x", ("a", 0, "1")),
    config(0, "x", ("a", 0, "1")),
    election(0, {"ok.name": [0, 99], "missing": [0]}),
    election(1, {"ok.name": [0]}),
    election(7, {"ok.name": [0]}),
    move("ok.name", 0, [1]),
    move("ok.name", 0, None),
    move("ok.name", 0, []),
    move("ok.name", 0, [2]),
    move("ok.name", 0, [1, 1]),
    move("ok.name", 99, [1]),
    move("missing", 0, [1]),
    features(("metadata.version", LEVEL, 1)),
    features(("metadata.version", 29, 1)),
    features(("metadata.version", 29, 2)),
    features(("metadata.version", 29, 3)),
    features(("metadata.version", 5, 3)),
    features(("no.such.version", 1, 1)),
    features(("transaction.version", 1, 1)),
    features(("transaction.version", 1, 2)),
    features(("transaction.version", 2, 1)),
    features(("transaction.version", 9, 1)),
    features(("share.version", -1, 1)),
    features(("share.version", 0, 9)),
    features(("share.version", 0, 2)),
    features(("share.version", 1, 2)),
    features(("share.version", 1, 1), ("no.such.version", 1, 1)),
    features(("kraft.version", 0, 3)),
    features(("kraft.version", 1, 1)),
    features(),
    deletion(DeleteTopicState(name="missing")),
    deletion(DeleteTopicState(topic_id=bytes(range(16)))),
    deletion(DeleteTopicState(name="configured", topic_id=bytes(range(16)))),
    deletion(DeleteTopicState()),
    deletion(DeleteTopicState(name="configured"), DeleteTopicState(name="configured")),
    deletion(DeleteTopicState(name="configured")),
    deletion(DeleteTopicState(name="configured")),
    deletion(DeleteTopicState(name="__cluster_metadata")),
    UnregisterBrokerRequest(broker_id=9),
]

RESPONSES: dict[type[Message], tuple[type[Message], int]] = {
    CreateTopicsRequest: (CreateTopicsResponse, 7),
    CreatePartitionsRequest: (CreatePartitionsResponse, 3),
    DeleteTopicsRequest: (DeleteTopicsResponse, 6),
    IncrementalAlterConfigsRequest: (IncrementalAlterConfigsResponse, 1),
    AlterPartitionReassignmentsRequest: (AlterPartitionReassignmentsResponse, 1),
    UpdateFeaturesRequest: (UpdateFeaturesResponse, 2),
    ElectLeadersRequest: (ElectLeadersResponse, 2),
    UnregisterBrokerRequest: (UnregisterBrokerResponse, 0),
}


def command_of(request: Message) -> Command[Message]:
    match request:
        case CreateTopicsRequest():
            return CreateTopics(request, hash(request.topics[0].name).to_bytes(16, signed=True))
        case UpdateFeaturesRequest():
            return commands.UpdateFeatures(request, kraft_version=1)
        case _:
            name = type(request).__name__.removesuffix("Request")
            found: Command[Message] = getattr(commands, name)(request)
            return found


def codes(value: object) -> list[int]:
    """Return all error codes of an answer, in their order."""
    if isinstance(value, list | tuple):
        return [code for each in value for code in codes(each)]
    if not isinstance(value, Struct):
        return []
    own = [value.error_code] if hasattr(value, "error_code") else []
    return own + [code for field in value._fields for code in codes(getattr(value, field.name))]


@dataclass
class Remains:
    """What a node of Apache Kafka said, and what it left behind."""

    data: Path
    verdicts: list[list[int]]
    described: str

    @property
    def log(self) -> Path:
        return self.data / METADATA_LOG

    def batches(self) -> Iterator[tuple[int, list[Message]]]:
        """Return the batches of the log with their first offsets."""
        for segment in sorted(self.log.glob("*.log")):
            for batch, records in replayable(segment.read_bytes()):
                yield batch.base_offset, records

    def image(self) -> ClusterImage:
        image = ClusterImage()
        for _, records in self.batches():
            for record in records:
                image.replay(record)
        return image


@pytest.fixture(scope="module")
def remains(tmp_path_factory: pytest.TempPathFactory) -> Remains:
    """Let a node answer all requests, describe its topics, and stop cleanly."""
    settings = {"num.partitions": "3", "metadata.log.max.record.bytes.between.snapshots": "3000"}
    folder = tmp_path_factory.mktemp("kafka")
    with apache_kafka(folder, settings) as kafka:
        verdicts = []
        for request in ODD_REQUESTS:
            response, version = RESPONSES[type(request)]
            verdicts.append(codes(kafka.ask(request, response, version)))
        described = kafka.tool("org.apache.kafka.tools.TopicCommand", "--describe")
    return Remains(kafka.data_directory, verdicts, described)


def test_the_same_verdicts(remains: Remains) -> None:
    cluster = TestCluster(level=LEVEL)
    settings = cluster.controller.cluster.settings
    # Apache Kafka 4.3.1 does not know all levels that we do.
    levels = {"metadata.version": LEVEL, "share.version": 1}
    known = {
        name: each._replace(highest=levels.get(name, each.highest))
        for name, each in settings.supported_features.items()
    }
    settings = replace(settings, supported_features=known)
    cluster.controller = Controller(cluster.image, settings, Rules())
    for request, verdict in zip(ODD_REQUESTS, remains.verdicts, strict=True):
        response, version = RESPONSES[type(request)]
        answer = cluster.perform(command_of(request)).encode(version)
        assert codes(response.decode(answer, version)) == verdict, request


def test_its_topics_are_in_our_image(remains: Remains) -> None:
    image = remains.image()
    described = re.findall(
        r"^Topic: (\S+)\tTopicId: (\S+)\tPartitionCount: (\d+)\t"
        r"ReplicationFactor: (\d+)\tConfigs: (\S*)$",
        remains.described,
        re.MULTILINE,
    )
    assert len(described) == len(image.topics) == 5
    for name, topic_id, partitions, factor, configs in described:
        topic = image.topics.find(name)
        assert topic is not None
        assert topic.topic_id == uuid_from_text(topic_id)
        assert len(topic.partitions) == int(partitions)
        assert {len(each.replicas) for each in topic.partitions.values()} == {int(factor)}
        ours = image.configs.of(Resource(ResourceType.TOPIC, name))
        # The tool shows what holds for all brokers as well.
        shown = dict(each.split("=") for each in configs.split(",") if "=" in each)
        assert ours.items() <= shown.items()
    assert image.level == LEVEL
    assert not image.brokers.is_active(1), "it was shut down"


def test_its_snapshots_and_what_follows_make_the_whole(remains: Remains) -> None:
    whole = canonical(remains.image().records())
    snapshots = [
        (snapshot_id, read_snapshot(path.read_bytes()))
        for path in remains.log.glob("*.checkpoint")
        if (snapshot_id := find_snapshot_id(path.name)) is not None
    ]
    assert len(snapshots) > 1
    for snapshot_id, snapshot in snapshots:
        image = ClusterImage()
        for record in snapshot.records:
            image.replay(record)
        for base_offset, records in remains.batches():
            for offset, record in enumerate(records, base_offset):
                if offset >= snapshot_id.end_offset:
                    image.replay(record)
        assert canonical(image.records()) == whole
        history = VoterHistory()
        for value in snapshot.control:
            history.replay(value, IN_SNAPSHOT)
        assert (history.kraft_version, history.voters[0].node_id) == (1, 1)


def test_its_formatted_files(remains: Remains) -> None:
    bootstrap = read_snapshot((remains.data / BOOTSTRAP_FILE).read_bytes())
    # Groups of Kafka Streams' own protocol are not served here.
    served = [record for record in bootstrap.records if record.name != "streams.version"]
    assert served == bootstrap_records(LEVEL)
    assert len(served) == len(bootstrap.records) - 1
    written = (remains.log / "quorum-state").read_bytes()
    election = parse_quorum_state(written)
    assert election == Election(epoch=election.epoch, leader_id=1)
    assert render_quorum_state(election, kraft_version=1) == written


def test_we_decide_the_same_records(remains: Remains) -> None:
    """Walk its log; where it created topics or shut down, decide the same from the same state."""
    settings = TestCluster(level=LEVEL).controller.cluster.settings
    controller = Controller(ClusterImage(), settings, Rules())
    compared = 0
    for decision in decisions(record for _, batch in remains.batches() for record in batch):
        command = command_for(decision)
        if command is not None:
            values = encode_records(controller.decide(command, NOW).records, LEVEL)
            decided = [decode_record(value) for value in values]
            assert canonical(decided) == canonical(each for each in decision if not is_idle(each))
            compared += 1
        for record in decision:
            controller.replay(record)
    assert compared >= 8


def decisions(records: Iterable[Message]) -> Iterator[list[Message]]:
    """Cut the log where one decision ends: what happens at the same time shares a batch."""
    decision: list[Message] = []
    for record in records:
        new = [each for each in decision if isinstance(each, TopicRecord)]
        match record:
            case PartitionChangeRecord() | ClearElrRecord():
                continues = True
            case PartitionRecord():
                continues = record.topic_id in [topic.topic_id for topic in new]
            case ConfigRecord():
                continues = record.resource_name in [topic.name for topic in new]
            case _:
                continues = False
        if decision and not continues:
            yield decision
            decision = []
        decision.append(record)
    yield decision


def command_for(decision: list[Message]) -> Command[Message] | None:
    """Return what was decided here, if it is one of those that can be asked again."""
    match decision:
        case [TopicRecord(), *_, PartitionRecord()]:
            return recreated(decision)
        case [BrokerRegistrationChangeRecord() as change, *_]:
            if not change.in_controlled_shutdown and not change.fenced:
                return None
            return BrokerHeartbeat(
                BrokerHeartbeatRequest(
                    broker_id=change.broker_id,
                    broker_epoch=change.broker_epoch,
                    current_metadata_offset=2**40,
                    want_shut_down=change.fenced != UNFENCE,
                )
            )
        case _:
            return None


def is_idle(record: Message) -> bool:
    """Whether it changes nothing, so that we do not write it."""
    match record:
        case ClearElrRecord():  # of a topic that is just being created
            return True
        case BrokerRegistrationChangeRecord():  # there were no cordoned directories before
            return record.cordoned_log_dirs == ()
        case _:
            return False


def recreated(records: list[Message]) -> CreateTopics:
    """Return the command that creates a topic like this."""
    [topic] = [record for record in records if isinstance(record, TopicRecord)]
    configs = [
        (record.name, record.value) for record in records if isinstance(record, ConfigRecord)
    ]
    partitions = [record for record in records if isinstance(record, PartitionRecord)]
    request = creation(topic.name, len(partitions), len(partitions[0].replicas), configs=configs)
    return CreateTopics(request, topic.topic_id)
