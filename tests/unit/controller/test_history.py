"""The law of snapshots over whole histories of commands."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau.controller.commands import AllocateProducerIds, DeleteTopics, UnregisterBroker
from moldau.metadata.image import ClusterImage
from moldau.metadata.snapshot import read_snapshot, write_snapshot
from moldau.metadata.topics import NO_LEADER
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.unit.controller.cluster import TestCluster
from tests.unit.controller.test_configs import CLICKS, DELETE, SET, change, replace
from tests.unit.controller.test_topics import add_partitions, elect, reassign

names = st.sampled_from(["clicks", "views", "web.clicks", "web_clicks", "bad name"])
brokers = st.integers(1, 3)


class History(RuleBasedStateMachine):
    """Commands in any order, on a cluster of up to three brokers."""

    @initialize(level=st.sampled_from([7, 20, 23, 33]), records_max=st.sampled_from([2, 1000]))
    def begin(self, level: int, records_max: int) -> None:
        self.cluster = TestCluster(level=level, brokers=[1], records_max=records_max)
        self.incarnation = 0
        self.cut = 0
        self.prefix = list(self.cluster.image.records())

    @rule(name=names, partitions=st.integers(-1, 4), factor=st.integers(-1, 3))
    def create(self, name: str, partitions: int, factor: int) -> None:
        self.cluster.create(name, partitions, factor, configs={"retention.ms": "1"})

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.cluster.perform(DeleteTopics(DeleteTopicsRequest(topic_names=[name])))

    @rule(name=names, count=st.integers(1, 6))
    def grow(self, name: str, count: int) -> None:
        add_partitions(self.cluster, name, count)

    @rule(broker=brokers)
    def register(self, broker: int) -> None:
        self.incarnation += 1
        self.cluster.register(broker, incarnation=b"%d" % self.incarnation)

    @rule(broker=brokers, fence=st.booleans(), shut_down=st.booleans())
    def heartbeat(self, broker: int, fence: bool, shut_down: bool) -> None:
        if self.cluster.image.brokers.find(broker) is not None:
            self.cluster.heartbeat(broker, want_fence=fence, want_shut_down=shut_down)

    @rule(broker=brokers)
    def unregister(self, broker: int) -> None:
        self.cluster.perform(UnregisterBroker(UnregisterBrokerRequest(broker_id=broker)))

    @rule(value=st.sampled_from(["1", "2"]), minimum=st.sampled_from(["1", "2"]))
    def configure(self, value: str, minimum: str) -> None:
        change(
            self.cluster,
            CLICKS,
            ("retention.ms", SET, value),
            ("min.insync.replicas", SET, minimum),
            ("unclean.leader.election.enable", SET, "true" if value == "2" else "false"),
        )

    @rule()
    def unset(self) -> None:
        change(self.cluster, CLICKS, ("retention.ms", DELETE, None))
        replace(self.cluster, CLICKS, {})

    @rule(name=names, replicas=st.none() | st.lists(brokers, max_size=3))
    def move(self, name: str, replicas: list[int] | None) -> None:
        reassign(self.cluster, name, 0, replicas)

    @rule(kind=st.integers(0, 1))
    def elect(self, kind: int) -> None:
        elect(self.cluster, kind, None)

    @rule()
    def allocate(self) -> None:
        broker = self.cluster.image.brokers.find(1)
        epoch = -1 if broker is None else broker.broker_epoch
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
        self.cluster.perform(AllocateProducerIds(request))

    @rule()
    def snapshot(self) -> None:
        """Take a snapshot as a file; what follows is replayed on top of it."""
        image = self.cluster.image
        pieces = write_snapshot(
            image.copy().records(), level=image.level, epoch=1, last_log_timestamp=1, timestamp=1
        )
        self.prefix = read_snapshot(b"".join(pieces)).records
        self.cut = len(self.cluster.log)

    @invariant()
    def leaders_can_lead(self) -> None:
        for topic in self.cluster.image.topics:
            assert sorted(topic.partitions) == list(range(len(topic.partitions)))
            for partition in topic.partitions.values():
                assert set(partition.isr) <= set(partition.replicas)
                assert len(set(partition.replicas)) == len(partition.replicas)
                assert not set(partition.isr) & set(partition.eligible_leaders)
                if partition.leader != NO_LEADER:
                    assert partition.leader in partition.isr
                    assert self.cluster.image.brokers.is_active(partition.leader)

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        whole = list(self.cluster.image.records())
        for records in ([*self.prefix, *self.cluster.log[self.cut :]], self.cluster.log):
            if records is not self.cluster.log and self.cut == 0:
                continue
            image = ClusterImage()
            for record in records:
                image.replay(record)
            assert list(image.records()) == whole


History.TestCase.settings = settings(
    max_examples=int(os.environ.get("MOLDAU_EXAMPLES", "4")) * 3,
    stateful_step_count=30,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
TestHistory = History.TestCase
