"""Offsets against a model, over random schedules.

Commits with and without transactions, markers, deletions of offsets and topics, restarts with the
log as it is and compacted, and clocks that jump. The laws: what was committed is found until it is
deleted or expires, over every restart; a transaction's offsets count all or not at all; who is no
member of the group, or no longer, commits nothing.
"""

import os
import random
from dataclasses import dataclass

import pytest

from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.groups.commands import ForgetTopicOffsets
from moldau.kernel.ids import ProducerEpoch, ProducerId
from moldau.protocol.errors import ErrorCode
from tests.unit.groups.group_world import GroupWorld, Written
from tests.unit.groups.offsets.requests import commit, commit_in_transaction, delete, fetch

SEEDS = int(os.environ.get("MOLDAU_OFFSETS_SEEDS", "60"))
STEPS = 120
GROUPS = ("a", "b", "c")
TOPICS = ("x", "y")
RETENTION_S = 60.0
CHECK_S = 7.0

Place = tuple[str, str, int]


@dataclass(frozen=True)
class Kept:
    """What the model knows of an offset."""

    offset: int
    at: int
    wall_ms: int


class Model:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = GroupWorld(
            offsets_retention_minutes="1", offsets_retention_check_interval_ms="7000"
        )
        self.ids: dict[str, bytes] = {}
        self.made = 0
        for topic in TOPICS:
            self.create(topic)
        self.kept: dict[Place, Kept] = {}
        self.open: dict[int, dict[Place, Kept]] = {}
        self.open_since: dict[int, int] = {}
        self.refused = 0

    def create(self, topic: str) -> None:
        self.made += 1
        self.ids[topic] = self.made.to_bytes(16, "big")
        self.world.create_topic(topic, self.ids[topic])

    def place(self) -> Place:
        draw = self.random
        return draw.choice(GROUPS), draw.choice(TOPICS), draw.randrange(2)

    def step(self) -> None:
        steps = [self.commit] * 6 + [self.commit_in_transaction] * 5 + [self.end] * 4
        steps += [self.commit_as_nobody, self.delete, self.recreate, self.restart, self.compact]
        steps += [self.wait] * 2
        self.random.choice(steps)()
        self.check()

    # What is done.

    def commit(self) -> None:
        group, topic, partition = self.place()
        offset = self.random.randrange(1000)
        kept = Kept(offset, self.world.end, self.world.wall_ms)
        answer = self.world.ask(
            commit(offset, group=group, topic=topic, topic_id=self.ids[topic], partition=partition)
        )
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        self.kept[group, topic, partition] = kept

    def commit_in_transaction(self) -> None:
        group, topic, partition = self.place()
        producer_id = self.random.randrange(3)
        offset = self.random.randrange(1000)
        kept = Kept(offset, self.world.end, self.world.wall_ms)
        self.world.ask(
            commit_in_transaction(
                (producer_id, 0),
                offset,
                group=group,
                topic=topic,
                topic_id=self.ids[topic],
                partition=partition,
            )
        )
        self.open.setdefault(producer_id, {})[group, topic, partition] = kept
        self.open_since.setdefault(producer_id, kept.at)

    def commit_as_nobody(self) -> None:
        group, topic, partition = self.place()
        end = self.world.end
        is_known = group in self.world.machine.shelf.groups
        asked = commit(group=group, generation_id_or_member_epoch=3, member_id="m")
        expected = ErrorCode.UNKNOWN_MEMBER_ID if is_known else ErrorCode.GROUP_ID_NOT_FOUND
        assert self.world.ask(asked) == expected
        in_transaction = commit_in_transaction(
            (1, 0), group=group, topic=topic, partition=partition, generation_id_or_member_epoch=3
        )
        assert self.world.ask(in_transaction, 6) == expected
        assert self.world.end == end
        self.refused += 1

    def end(self) -> None:
        if not self.open_since:
            return
        producer_id = self.random.choice(sorted(self.open_since))
        del self.open_since[producer_id]
        is_commit = self.random.random() < 0.6
        producer = ProducerIdentity(ProducerId(producer_id), ProducerEpoch(0))
        self.world.end_transaction(producer, is_commit=is_commit)
        for place, kept in self.open.pop(producer_id, {}).items():
            newer = place not in self.kept or self.kept[place].at < kept.at
            if is_commit and newer:
                self.kept[place] = kept

    def delete(self) -> None:
        group, topic, partition = self.place()
        self.world.ask(delete(partition, group=group, topic=topic))
        if group in self.world.machine.shelf.groups:
            self.forget((group, topic, partition))

    def recreate(self) -> None:
        topic = self.random.choice(TOPICS)
        gone = self.ids[topic]
        self.world.delete_topic(gone)
        self.create(topic)
        self.world.command(ForgetTopicOffsets([(topic, gone)]))
        for place in self.places():
            if place[1] == topic:
                self.forget(place)

    def restart(self) -> None:
        self.world.restart()

    def compact(self) -> None:
        """Restart with a log that has been compacted as far as no transaction is open."""
        stable = min(self.open_since.values(), default=self.world.end)
        self.world.log = compacted(self.world.log, stable)
        self.world.restart()

    def wait(self) -> None:
        """Let time pass; the wall clock may jump ahead."""
        seconds = self.random.choice([1.0, CHECK_S, RETENTION_S / 2])
        wall_seconds = seconds + self.random.choice([0, 0, 0, RETENTION_S])
        looks = self.world.monotonic + seconds >= min(self.world.timers.values())
        self.world.pass_time(seconds, wall_seconds=wall_seconds)
        if looks:
            for place, kept in list(self.kept.items()):
                is_old = self.world.wall_ms - kept.wall_ms >= RETENTION_S * 1000
                if is_old and not self.is_open(place):
                    del self.kept[place]

    # What has to be.

    def places(self) -> set[Place]:
        return {*self.kept, *(place for each in self.open.values() for place in each)}

    def forget(self, place: Place) -> None:
        self.kept.pop(place, None)
        for producer_id in list(self.open):
            self.open[producer_id].pop(place, None)
            if not self.open[producer_id]:
                del self.open[producer_id]

    def is_open(self, place: Place) -> bool:
        return any(place in each for each in self.open.values())

    def check(self) -> None:
        for group in GROUPS:
            found = {
                (group, topic.name, row.partition_index): row.committed_offset
                for topic in self.world.command(fetch(group=group)).topics
                for row in topic.partitions
            }
            expected = {
                place: kept.offset for place, kept in self.kept.items() if place[0] == group
            }
            assert found == expected
            for topic in TOPICS:
                (stable,) = self.world.command(
                    fetch(0, 1, group=group, topic=topic, is_stable=True)
                ).topics
                for row in stable.partitions:
                    place = group, topic, row.partition_index
                    if self.is_open(place):
                        assert row.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
                    else:
                        assert row.committed_offset == expected.get(place, -1)


def compacted(log: list[Written], stable: int) -> list[Written]:
    """Return what the cleaner leaves: of each key the last record that is not aborted."""
    last: dict[bytes, int] = {}
    for number, each in enumerate(log):
        if each.key is not None and each.offset < stable and not is_aborted(each, log[number:]):
            last[each.key] = each.offset
    return [
        each
        for each in log
        if each.key is None or each.offset >= stable or last.get(each.key) == each.offset
    ]


def is_aborted(written: Written, after: list[Written]) -> bool:
    if written.producer_id == NO_PRODUCER:
        return False
    markers = (e for e in after if e.key is None and e.producer_id == written.producer_id)
    return not next(markers).is_commit


@pytest.mark.parametrize("group", range(4))
def test_offsets_are_found_until_they_are_forgotten(group: int) -> None:
    run(range(group * SEEDS // 4, (group + 1) * SEEDS // 4))


@pytest.mark.long
def test_offsets_are_found_over_long_schedules() -> None:
    run(range(1000, 1000 + SEEDS * 10))


def run(seeds: range) -> None:
    recorded = refused = 0
    for seed in seeds:
        model = Model(seed)
        try:
            for _ in range(STEPS):
                model.step()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        recorded += model.world.end
        refused += model.refused
    assert recorded > len(seeds) * STEPS / 2, "hardly anything is recorded"
    assert refused > len(seeds), "hardly anything is refused"
