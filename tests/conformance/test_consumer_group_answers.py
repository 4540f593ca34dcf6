"""The same requests of members of consumer groups, answered by Apache Kafka 4.3.1 and by us."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from moldau.protocol.schema import Message, Struct
from tests.conformance.brokers import run_apache, run_moldau
from tests.conformance.consumer_group_script import play
from tests.wire import Wire

SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.size": "3",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
# What differs by nature: words, what is drawn by lot, and what depends on that.
NATURE: Final = {
    "client_host",
    "error_message",
    "leader",
    "member_assignment",
    "member_id",
    "member_metadata",
    "metadata",
    "topic_id",
}
# Which partitions a member gets differs, how many does not.
COUNTED: Final = {"topic_partitions"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Message, Message]]:
    both = []
    for run, settings in ((run_apache, {}), (run_moldau, {"durability": "page-cache"})):
        directory = tmp_path_factory.mktemp("node")
        with run(directory, SETTINGS | settings) as broker, Wire(broker.host, broker.port) as wire:
            both.append(play(wire))
    kafkas, ours = both
    assert kafkas.keys() == ours.keys()
    return {name: (kafkas[name], ours[name]) for name in kafkas}


def test_answers_are_the_same(answers: Mapping[str, tuple[Message, Message]]) -> None:
    assert len(answers) > 100
    differences = [
        f"{name}\n  Kafka: {theirs}\n  ours:  {ours}"
        for name, (theirs, ours) in (
            (name, (_shown(kafkas), _shown(our))) for name, (kafkas, our) in answers.items()
        )
        if theirs != ours
    ]
    assert not differences, f"{len(differences)} answers differ:\n" + "\n".join(differences)


def _shown(value: Any) -> Any:
    if isinstance(value, Struct):
        return {
            field.name: (
                sum(len(each.partitions) for each in getattr(value, field.name))
                if field.name in COUNTED
                else bool(getattr(value, field.name))
                if field.name in NATURE
                else _shown(getattr(value, field.name))
            )
            for field in value._fields
        }
    if isinstance(value, tuple | list):
        return sorted((_shown(item) for item in value), key=repr)
    return value
