"""The Java client's consumers change the protocol of their group, one after the other."""

from pathlib import Path

from tests.conformance import jars
from tests.conformance.brokers import run_broker

SETTINGS = {
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}


def test_members_are_replaced_one_by_one(tmp_path: Path) -> None:
    with run_broker(tmp_path, SETTINGS) as broker:
        said = jars.run("ConsumerGroups", broker.bootstrap_servers)
    assert said.splitlines() == [
        "classic members have all",
        "Classic Stable 2",
        "a consumer joined them",
        "Consumer Stable 3",
        "another took a's place",
        "all are of the consumer protocol",
        "Consumer Stable 2",
        "a classic member came back",
        "it is alone",
        "Classic Stable 1",
        "everything was read",
        "a pattern finds a topic",
        "a pattern finds another",
        "lost: 0",
        # A static member that is expected back.
        "Consumer Reconciling 1",
    ]
