"""Apache Kafka 4.3.1 starts on metadata that we wrote, and carries it on."""

from pathlib import Path

from moldau.consensus.effects import AppendBatches, QuorumEffect, SaveElection
from moldau.consensus.events import Propose, Start, Synced
from moldau.consensus.member import QuorumMember
from moldau.consensus.quorum_state import QUORUM_STATE_FILE, Election, render_quorum_state
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import IN_SNAPSHOT, Voter, VoterHistory, VoterListener, voters_record
from moldau.kernel.ids import TopicId
from moldau.kernel.snapshot_id import FIRST_SNAPSHOT
from moldau.log.identity import MetaProperties, render_meta_properties, render_partition_metadata
from moldau.metadata.batches import encode_records, replayable
from moldau.metadata.bootstrap import (
    BOOTSTRAP_FILE,
    bootstrap_file,
    bootstrap_records,
    first_snapshot,
)
from moldau.metadata.image import ClusterImage
from moldau.metadata.snapshot import read_snapshot
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.stored.cluster_metadata import BeginTransactionRecord
from moldau.simulation.quorum_log import MemoryQuorumLog
from tests.conformance.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.unit.controller.cluster import NOW, TestCluster, directory_of
from tests.unit.controller.test_configs import CLICKS, SET, change

LEVEL = 30
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")


class FileLog(MemoryQuorumLog):
    """The metadata log as one plain segment in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.segment = folder / "00000000000000000000.log"

    def perform(self, effects: list[QuorumEffect]) -> None:
        for effect in effects:
            match effect:
                case SaveElection(election):
                    self.save(election)
                case AppendBatches(data):
                    with self.segment.open("ab") as segment:
                        segment.write(data)
                    self.append(data)
                    self.begin_sync()
                    self.end_sync()
                case _:
                    pass

    def save(self, election: Election) -> None:
        data = render_quorum_state(election, kraft_version=1)
        (self.folder / QUORUM_STATE_FILE).write_bytes(data)


def write_directory(data: Path) -> TestCluster:
    """Format a directory and write the log of a cluster that was shut down cleanly."""
    folder = data / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    directory_id = directory_of(1)
    voter = Voter(1, directory_id, (VoterListener("CONTROLLER", "127.0.0.1", 9093),))
    timestamp = NOW.wall_ms
    (data / "meta.properties").write_bytes(
        render_meta_properties(MetaProperties(CLUSTER_ID, 1, directory_id))
    )
    (data / BOOTSTRAP_FILE).write_bytes(bootstrap_file(bootstrap_records(LEVEL), timestamp))
    snapshot = first_snapshot(voters_record((voter,)), timestamp)
    (folder / FIRST_SNAPSHOT.file_name).write_bytes(snapshot)
    (folder / "partition.metadata").write_bytes(render_partition_metadata(METADATA_TOPIC_ID))

    log = FileLog(folder)
    history = VoterHistory()
    for value in read_snapshot(snapshot).control:
        history.replay(value, IN_SNAPSHOT)
    settings = QuorumSettings(CLUSTER_ID)
    member = QuorumMember(voter, settings, history, log, None, lambda: 0.5)
    log.perform(member.handle(Start(), NOW))
    # Broker epochs are offsets, so what the cluster counts begins where the quorum has begun.
    cluster = TestCluster(level=LEVEL, records_max=20, first_offset=log.end_offset)
    cluster.create("clicks", 3, configs={"retention.ms": "86400000"})
    cluster.create("many", 60)
    change(cluster, CLICKS, ("cleanup.policy", SET, "compact"))
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.heartbeat(1, want_shut_down=True) == (True, True)
    assert sum(isinstance(record, BeginTransactionRecord) for record in cluster.log) == 3
    for batch in cluster.batches:
        log.perform(member.handle(Propose(encode_records(batch, LEVEL)), NOW))
        log.perform(member.handle(Synced(log.end_offset), NOW))
    assert member.high_watermark == log.end_offset
    return cluster


def test_kafka_carries_our_metadata_on(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    kafka.write_properties()
    cluster = write_directory(kafka.data_directory)
    try:
        kafka.start()
        described = kafka.tool("org.apache.kafka.tools.TopicCommand", "--describe")
        topic = CreatableTopic(name="theirs", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic])
        [created] = kafka.ask(request, CreateTopicsResponse, 7).topics
        kafka.stop()
    finally:
        kafka.kill()
    assert created.error_code == 0
    for name, partitions in (("clicks", 3), ("many", 60)):
        assert f"Topic: {name}\t" in described
        assert described.count(f"\tTopic: {name}\tPartition: ") == partitions
        assert described.count(f"\tTopic: {name}\tPartition: 0\tLeader: 1\t") == 1
    assert "cleanup.policy=compact" in described
    image = ClusterImage()
    epochs = set()
    for segment in sorted((kafka.data_directory / "__cluster_metadata-0").glob("*.log")):
        for batch, records in replayable(segment.read_bytes()):
            epochs.add(batch.leader_epoch)
            for record in records:
                image.replay(record)
    assert epochs == {1, 2}
    for topic in cluster.image.topics:
        carried = image.topics.find_by_id(topic.topic_id)
        assert carried is not None
        assert carried.name == topic.name
        assert list(carried.partitions) == list(topic.partitions)
    assert image.topics.find("theirs") is not None
    assert dict(image.configs.of(CLICKS)) == dict(cluster.image.configs.of(CLICKS))
