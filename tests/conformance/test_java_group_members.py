"""What our members of classic groups say and share out, beside Kafka's own classes."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.client.assignors import ASSIGNORS, ClientAssignor
from moldau.client.member_metadata import (
    Subscription,
    decode_assignment,
    decode_sticky,
    decode_subscription,
    encode_assignment,
    encode_sticky,
    encode_subscription,
)
from moldau.client.subscribers import Subscriber
from moldau.kernel.ids import TopicPartition
from tests.conformance import jars
from tests.conformance.apache_kafka import FRUGAL

PROGRAM = Path(__file__).parent / "java" / "GroupMembers.java"
SECONDS_MAX = 60

OWNED = [TopicPartition("rivers", n) for n in (2, 0)] + [TopicPartition("lakes", 7)]
SUBSCRIPTIONS = [
    Subscription(("rivers",)),
    Subscription(("rivers", "lakes"), OWNED, 5, "rack-1", b"\x01\x02"),
    Subscription((), (), -1, None, b""),
]


def _ask(lines: Sequence[str]) -> list[str]:
    done = subprocess.run(
        ["java", *FRUGAL, str(PROGRAM)],
        env={**os.environ, "CLASSPATH": jars.client_classpath()},
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        timeout=SECONDS_MAX,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_said_has_javas_bytes() -> None:
    lines, ours = [], []
    for version in range(4):
        for each in SUBSCRIPTIONS:
            data = "-" if each.user_data is None else each.user_data.hex() or "-"
            lines.append(
                f"subscription {version} {_join(each.topics)} {_join(each.owned)}"
                f" {each.generation} {each.rack or '-'} {data}"
            )
            said = (
                each
                if each.user_data
                else Subscription(each.topics, each.owned, each.generation, each.rack)
            )
            encoded = encode_subscription(said, version)
            ours.append(encoded.hex())
            decoded = decode_subscription(encoded)
            assert sorted(decoded.topics) == sorted(each.topics)
            assert sorted(decoded.owned) == (sorted(each.owned) if version >= 1 else [])
        lines.append(f"assignment {version} {_join(OWNED)}")
        ours.append(encode_assignment(OWNED, version).hex())
        assert list(decode_assignment(encode_assignment(OWNED, version))) == OWNED
    lines.append(f"sticky {_join(OWNED)} 9")
    ours.append(encode_sticky(OWNED, 9).hex())
    theirs = _ask(lines)
    assert theirs[:-1] == ours[:-1]
    # Java's groups topics in no order of its own.
    assert len(theirs[-1]) == len(ours[-1])
    assert _sorted_memory(bytes.fromhex(theirs[-1])) == _sorted_memory(bytes.fromhex(ours[-1]))


def _sorted_memory(data: bytes) -> tuple[list[TopicPartition], int]:
    owned, generation = decode_sticky(data)
    return sorted(owned), generation


def _join(each: Sequence[object]) -> str:
    return ",".join(map(str, each)) or "-"


@pytest.mark.parametrize(
    "assignor",
    [each for each in ASSIGNORS if "sticky" not in each.name],
    ids=lambda each: each.name,
)
def test_partitions_are_shared_out_as_in_java(assignor: ClientAssignor) -> None:
    chance = random.Random(7)
    lines, ours = [], []
    for _ in range(200):
        topics = [f"t{n}" for n in range(chance.randrange(1, 5))]
        counts = {topic: chance.randrange(0, 9) for topic in topics}
        members = []
        for n in range(chance.randrange(1, 6)):
            wanted = chance.sample(topics, chance.randrange(1, len(topics) + 1))
            instance = f"i{chance.randrange(100)}-{n}" if chance.random() < 0.3 else None
            members.append(Subscriber(f"m{n}", Subscription(wanted), instance))
        counted = {
            topic: count
            for topic, count in counts.items()
            if any(topic in each.subscription.topics for each in members)
        }
        told = [
            f"{each.member_id}{'/' + each.instance_id if each.instance_id else ''}"
            f"={'+'.join(each.subscription.topics)}"
            for each in members
        ]
        words = ",".join(f"{topic}:{count}" for topic, count in counted.items())
        lines.append(f"assign {assignor.java_class} {words} {','.join(told)}")
        found = assignor.assign(counted, members)
        ours.append(
            ",".join(
                f"{member}={'+'.join(sorted(map(str, found[member])))}" for member in sorted(found)
            )
        )
    assert _ask(lines) == ours
