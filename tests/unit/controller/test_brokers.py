"""Brokers register, serve, shut down and leave."""

import pytest

from moldau.controller.commands import (
    Activate,
    AllocateProducerIds,
    BrokerHeartbeat,
    RegisterBroker,
    RegisterController,
    UnregisterBroker,
)
from moldau.controller.controller import Controller
from moldau.metadata.bootstrap import bootstrap_records
from moldau.metadata.image import ClusterImage
from moldau.metadata.topics import Partition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    Listener,
)
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    TopicRecord,
)
from tests.unit.controller.cluster import CLUSTER_ID, NOW, Rules, TestCluster, directory_of


def partition_of(cluster: TestCluster, name: str = "clicks") -> Partition:
    topic = cluster.image.topics.find(name)
    assert topic is not None
    return topic.partitions[0]


def epoch_of(cluster: TestCluster, broker_id: int = 1) -> int:
    broker = cluster.image.brokers.find(broker_id)
    assert broker is not None
    return broker.broker_epoch


def test_registration_is_fenced_until_the_broker_has_caught_up() -> None:
    cluster = TestCluster(brokers=[])
    epoch = cluster.register(1)
    assert epoch == len(cluster.log) - 1
    request = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch - 1
    )
    answer = cluster.perform(BrokerHeartbeat(request))
    assert (answer.is_caught_up, answer.is_fenced) == (False, True)
    assert not cluster.image.brokers.is_active(1)
    cluster.unfence(1)
    assert cluster.image.brokers.is_active(1)


def test_clean_shutdown_and_restart() -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    before = partition_of(cluster)
    # First the partitions go, then the broker may.
    assert cluster.heartbeat(1, want_shut_down=True) == (False, False)
    gone = partition_of(cluster)
    assert (gone.leader, gone.isr, gone.eligible_leaders) == (-1, (), (1,))
    assert gone.last_known_leaders == (1,)
    assert cluster.heartbeat(1, want_shut_down=True) == (True, True)
    # Once it began to go, only a new registration brings it back.
    assert cluster.heartbeat(1) == (True, False)
    epoch = cluster.register(1, incarnation=b"second", previous_epoch=epoch_of(cluster))
    assert epoch == epoch_of(cluster)
    cluster.unfence(1)
    back = partition_of(cluster)
    assert (back.leader, back.isr, back.leader_recovery_state) == (1, (1,), 0)
    assert (back.eligible_leaders, back.last_known_leaders) == ((), ())
    assert back.leader_epoch == before.leader_epoch + 2


def test_a_killed_broker_takes_over_from_itself() -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    cluster.register(1, incarnation=b"second")
    gone = partition_of(cluster)
    # What it had may be lost, so it is not eligible; nobody else was there, so it comes back.
    assert (gone.leader, gone.isr, gone.eligible_leaders) == (-1, (), ())
    cluster.unfence(1)
    back = partition_of(cluster)
    assert (back.leader, back.isr, back.leader_recovery_state) == (1, (1,), 1)


def test_before_eligible_leaders_the_last_in_sync_stays_in_sync() -> None:
    cluster = TestCluster(level=20)
    cluster.create("clicks")
    cluster.register(1, incarnation=b"second")
    gone = partition_of(cluster)
    assert (gone.leader, gone.isr) == (-1, (1,))
    cluster.unfence(1)
    back = partition_of(cluster)
    assert (back.leader, back.isr, back.leader_epoch) == (1, (1,), 2)


def test_the_same_incarnation_keeps_its_epoch() -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    epoch = epoch_of(cluster)
    assert cluster.register(1) == epoch
    assert cluster.image.brokers.is_active(1)
    assert partition_of(cluster).leader == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        (
            {
                "features": [
                    Feature(
                        name="metadata.version", min_supported_version=7, max_supported_version=30
                    )
                ]
            },
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(15) + b"\x02"]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory_of(7)] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory_of(1)]}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_refused_registrations(changes: dict[str, object], code: ErrorCode) -> None:
    cluster = TestCluster()
    features = [Feature(name=name, max_supported_version=100) for name in cluster.image.levels]
    values = {
        "broker_id": 2,
        "cluster_id": CLUSTER_ID,
        "features": features,
        "log_dirs": [directory_of(2)],
    }
    written = len(cluster.log)
    for each, expected in ((values | changes, code), (values, ErrorCode.NONE)):
        request = BrokerRegistrationRequest(**each)
        assert len(cluster.log) == written
        answer = cluster.perform(RegisterBroker(request, next_offset=written))
        assert answer.error_code == expected


def test_heartbeats_of_strangers() -> None:
    cluster = TestCluster()
    for broker_id, epoch, code in (
        (1, 0, ErrorCode.STALE_BROKER_EPOCH),
        (2, 0, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ):
        request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch)
        assert cluster.perform(BrokerHeartbeat(request)).error_code == code
        ids = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        assert cluster.perform(AllocateProducerIds(ids)).error_code == code


def test_a_lost_directory_takes_its_partitions() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]})
    cluster.create("other", -1, -1, assignments={0: [2]})
    cluster.heartbeat(1, offline_log_dirs=[directory_of(1)])
    assert (partition_of(cluster).leader, partition_of(cluster).isr) == (2, (2,))
    assert partition_of(cluster, "other").leader == 2


def test_cordoned_directories_are_noted() -> None:
    cluster = TestCluster()
    cluster.heartbeat(1, cordoned_log_dirs=[directory_of(1)])
    written = len(cluster.log)
    cluster.heartbeat(1, cordoned_log_dirs=[directory_of(1)])
    assert len(cluster.log) == written
    broker = cluster.image.brokers.find(1)
    assert broker is not None
    assert broker.cordoned_log_dirs == (directory_of(1),)


def test_unregistration() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]})
    command = UnregisterBroker(UnregisterBrokerRequest(broker_id=1))
    assert cluster.perform(command).error_code == 0
    assert cluster.image.brokers.find(1) is None
    assert (partition_of(cluster).leader, partition_of(cluster).isr) == (2, (2,))
    assert cluster.perform(command).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_producer_ids_are_never_handed_out_twice() -> None:
    cluster = TestCluster()
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch_of(cluster))
    answers = [cluster.perform(AllocateProducerIds(request)) for _ in range(3)]
    assert [(each.producer_id_start, each.producer_id_len) for each in answers] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    cluster.image.next_producer_id = 2**63 - 1000
    assert cluster.perform(AllocateProducerIds(request)).error_code != 0


def test_registration_of_a_controller() -> None:
    cluster = TestCluster()
    listener = Listener(name="CONTROLLER", host="localhost", port=9093)
    request = ControllerRegistrationRequest(controller_id=1, listeners=[listener])
    assert cluster.perform(RegisterController(request)).error_code == 0
    assert cluster.image.controllers[1].end_points[0].port == 9093
    older = TestCluster(level=14)
    answer = older.perform(RegisterController(request))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_thousands_of_partitions_follow_their_broker_in_batches() -> None:
    cluster = TestCluster(records_max=100)
    cluster.create("many", 1000)
    written = len(cluster.batches)
    cluster.heartbeat(1, want_fence=True)
    assert max(map(len, cluster.batches[written:])) <= 101
    topic = cluster.image.topics.find("many")
    assert topic is not None
    assert {partition.leader for partition in topic.partitions.values()} == {-1}
    changes = [record for record in cluster.log if isinstance(record, PartitionChangeRecord)]
    assert len(changes) == 1000


def test_activation_drops_what_is_half_done() -> None:
    cluster = TestCluster()
    settings = cluster.controller.cluster.settings
    controller = Controller(ClusterImage(), settings, Rules())
    for record in [*cluster.log, BeginTransactionRecord(), TopicRecord(name="half")]:
        controller.replay(record)
    decision = controller.decide(Activate(bootstrap_records(33)), NOW)
    [abort] = decision.records
    assert isinstance(abort, AbortTransactionRecord)
    controller.replay(abort)
    assert len(controller.image.topics) == 0
    assert controller.image.brokers.is_active(1)


def test_activation_repeats_first_records_that_did_not_end() -> None:
    cluster = TestCluster(brokers=[])
    assert isinstance(cluster.log[0], BeginTransactionRecord)
    assert isinstance(cluster.log[-1], EndTransactionRecord)
    settings = cluster.controller.cluster.settings
    controller = Controller(ClusterImage(), settings, Rules())
    for record in cluster.log[:-1]:
        controller.replay(record)
    records = list(controller.decide(Activate(bootstrap_records(33)), NOW).records)
    assert isinstance(records[0], AbortTransactionRecord)
    for record in records:
        controller.replay(record)
    assert controller.image.levels == cluster.image.levels
