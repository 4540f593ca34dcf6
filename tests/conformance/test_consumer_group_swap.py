"""A consumer group in a data directory that Apache Kafka 4.3.1 and we take turns on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from moldau.protocol.messages.consumer_group_describe import DescribedGroup
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.consumer_group_script import Classic, Member, Script
from tests.conformance.test_data_directory_swap import complaints, kafka_on
from tests.integration.nodes import running
from tests.wire import Wire, wait_for

NOT_YET = {14, 15, 16}
"""The coordinator loads, or is not there yet."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}


@contextmanager
def script(address: str) -> Iterator[Script]:
    host, port = address.rsplit(":", 1)
    with Wire(host, int(port)) as wire:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
        wait_for(
            lambda: wire.call(request, FindCoordinatorResponse, 4).coordinators[0].error_code == 0
        )
        yield Script(wire)


def settled(script: Script, member: Member) -> None:
    """Have a member go on where it was: nobody fences it, and it has its part in the end."""
    member.script = script

    def is_done() -> bool:
        script.answers.clear()
        answer = member.beat("heartbeat")
        assert answer.error_code in {0, *NOT_YET}, answer
        return answer.error_code == 0 and sum(map(len, member.owned.values())) == 3

    wait_for(is_done)


def described(script: Script, *members: Member) -> Sequence[DescribedGroup]:
    """Have members go on until their group has nothing left to do; return both groups."""
    groups: Sequence[DescribedGroup] = ()

    def is_done() -> bool:
        nonlocal groups
        for member in members:
            settled(script, member)
        groups = script.describe("described", "group", "mixed").groups
        return groups[0].group_state == "Stable"

    wait_for(is_done)
    return groups


def test_members_go_on_with_the_other_coordinator(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path, settings=SETTINGS)
    kafka.write_properties()
    given = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    options = ("--data", kafka.data_directory, *given)
    four_three = (*options, "--set", "metadata.version=4.3")
    with running(*four_three) as node, script(node.bootstrap_servers) as ours:
        ours.create("topic", 6)
        a = Member(ours, "group", "a", subscribed_topic_names=["topic"], rack_id="r")
        b = Member(ours, "group", "b", subscribed_topic_regex="topic", instance_id="i")
        wait_for(lambda: (ours.answers.clear(), a.join("a").error_code == 0)[1])
        b.join("b")
        settled(ours, a)
        c = Classic(ours, "mixed")
        c.join("c gets an id", ["topic"])
        c.join("c", ["topic"])
        c.sync("c syncs", {"topic": range(6)})
        Member(ours, "mixed", "m", subscribed_topic_names=["topic"]).join("m")
    epoch = a.epoch
    with kafka_on(kafka) as servers, script(servers) as theirs:
        group, mixed = described(theirs, a, b)
        assert a.epoch >= epoch
    assert len(group.members) == 2
    assert sorted(member.member_type for member in mixed.members) == [0, 1]
    assert complaints(kafka) == []
    epoch = a.epoch
    with running(*options) as node, script(node.bootstrap_servers) as ours:
        group, mixed = described(ours, a, b)
        assert a.epoch >= epoch
        assert len(group.members) == 2
        assert sorted(member.member_type for member in mixed.members) == [0, 1]
        b.leave("b leaves", instance_id="i")
