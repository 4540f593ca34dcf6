"""A copy of the ledgers' topic that is read on says what a reader says that begins anew.

MOLDAU_LEDGER_SEEDS=20000 runs more schedules. Bugs are planted in it, each of which they find.
"""

import math
import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from moldau.client.committed_fetch import FetchedTail, FetchPlace
from moldau.pipelines.connector.sink import ledger_copy
from moldau.pipelines.connector.sink.ledger_copy import LedgerCopy
from moldau.protocol.schema import ZERO_UUID
from tests.unit.pipelines.connector.ledger_topic import DAY, LedgerTopic

SEEDS = int(os.environ.get("MOLDAU_LEDGER_SEEDS", "300"))
PLANT_SEEDS = 2000
"""Far more than it takes to find a bug."""
STEPS = 60
KEYS = ("query", "other", "job-1")


class Schedule:
    """A topic and some copies of it, and what happens to them by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.topic = LedgerTopic(self.chance)
        self.copies = [LedgerCopy() for _ in range(2)]
        self._written = 0

    def play(self) -> None:
        for _ in range(STEPS):
            if self.chance.random() < 0.35:
                self.read(self.chance.choice(self.copies))
            else:
                self.happen()

    def happen(self) -> None:
        topic, chance = self.topic, self.chance
        dice = chance.random()
        if dice < 0.7:
            self._write()
        elif dice < 0.8:
            topic.compact()
        elif dice < 0.84:
            topic.delete_records()
        elif dice < 0.88:
            topic.create_anew()
        elif dice < 0.92:
            topic.cut()
        else:
            topic.now += chance.choice([1.0, DAY + 1])

    def _write(self) -> None:
        open_ones = [each for each in self.topic.batches if each.state == "open"]
        if open_ones and self.chance.random() < 0.7:
            self.topic.end(self.chance.choice(open_ones), is_commit=self.chance.random() < 0.8)
        else:
            self._written += 1
            is_tombstone = self.chance.random() < 0.2
            value = None if is_tombstone else str(self._written).encode()
            self.topic.write(self.chance.choice(KEYS), value)

    def read(self, copy: LedgerCopy) -> None:
        topic = self.topic
        waits = self.chance.random() < 0.5
        edge = topic.log_end if waits else topic.stable_offset

        def between() -> None:
            # Others write on while it reads.
            if self.chance.random() < 0.2:
                self._write()

        topic.read(copy, waits=waits, between=between)
        says = {name: each.value for name, each in copy.ledgers.items()}
        # It has come to the end that there was, or to a later one.
        ends = range(edge, topic.stable_offset + 1)
        assert any(says == topic.says(end) for end in ends), (says, topic)


def play_all(seeds: int) -> None:
    for seed in range(seeds):
        try:
            Schedule(seed).play()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_a_copy_says_what_the_topic_says() -> None:
    play_all(SEEDS)


def test_a_broker_without_ids_of_topics_is_read_anew() -> None:
    topic = LedgerTopic(random.Random(1), topic_id=ZERO_UUID)
    copy = LedgerCopy()
    topic.end(topic.write("query", b"1"), is_commit=True)
    topic.read(copy, waits=False, between=lambda: None)
    assert copy.ledgers["query"].value == b"1"
    assert next(copy.read_on(lambda: 0.0, waits=False)) is None


# Bugs.


def change_tails(patch: pytest.MonkeyPatch, change: Callable[[FetchedTail], FetchedTail]) -> None:
    take = LedgerCopy._take
    patch.setattr(LedgerCopy, "_take", lambda self, tail: take(self, change(tail)))


def change_places(patch: pytest.MonkeyPatch, **wrong: str) -> None:
    """Have Fetch told what the topic is now, not what it was when a copy was read."""
    fetch = LedgerTopic.fetch

    def change(self: LedgerTopic, place: FetchPlace | None, batches_max: int) -> FetchedTail:
        if place is not None:
            now = {name: getattr(self, value) for name, value in wrong.items()}
            place = replace(place, **now)
        return fetch(self, place, batches_max)

    patch.setattr(LedgerTopic, "fetch", change)


def the_topic_s_id_is_not_told(patch: pytest.MonkeyPatch) -> None:
    change_places(patch, topic_id="topic_id")


def the_leader_s_epoch_is_not_told(patch: pytest.MonkeyPatch) -> None:
    change_places(patch, leader_epoch="epoch")


def the_start_of_the_log_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    change_tails(patch, lambda tail: replace(tail, log_start=0))


def tombstones_are_overlooked(patch: pytest.MonkeyPatch) -> None:
    def change(tail: FetchedTail) -> FetchedTail:
        return replace(tail, records=[each for each in tail.records if each.value is not None])

    change_tails(patch, change)


def an_old_copy_is_read_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_copy, "AGE_SECONDS_MAX", math.inf)


def a_lost_place_leaves_what_was_read(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: LedgerCopy) -> None:
        self._place = None

    patch.setattr(LedgerCopy, "_forget", wrong)


def a_place_is_kept_after_an_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LedgerCopy, "_forget", lambda self: self.ledgers.clear())


def what_is_committed_is_taken_for_the_end(patch: pytest.MonkeyPatch) -> None:
    read = LedgerTopic.read
    patch.setattr(
        LedgerTopic, "read", lambda self, copy, **how: read(self, copy, **how | {"waits": False})
    )


PLANTS = (
    the_topic_s_id_is_not_told,
    the_leader_s_epoch_is_not_told,
    the_start_of_the_log_is_overlooked,
    tombstones_are_overlooked,
    an_old_copy_is_read_on,
    a_lost_place_leaves_what_was_read,
    a_place_is_kept_after_an_error,
    what_is_committed_is_taken_for_the_end,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        play_all(PLANT_SEEDS)
