"""Offsets out of Spark's progress."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau import Admin, TopicPartition
from moldau.pipelines.connector.cluster_offsets import CommitWarning
from moldau.pipelines.streams.checkpoints import Checkpoints
from moldau.pipelines.streams.committing import Committer, FormerGroup, group_of, offsets_of
from moldau.testing.broker import Broker


def test_the_lower_of_two_places_in_one_topic() -> None:
    progress = {
        "sources": [
            {"endOffset": {"orders": {"0": 5, "1": 7}}},
            {"endOffset": '{"orders": {"0": 3}, "users": {"0": 1}}'},
            {"endOffset": None},
            {"endOffset": 17},
        ]
    }
    assert offsets_of(progress) == {
        TopicPartition("orders", 0): 3,
        TopicPartition("orders", 1): 7,
        TopicPartition("users", 0): 1,
    }


def test_two_apps_have_two_groups_whatever_their_names_are() -> None:
    assert group_of("shop", "totals") == "moldau-shop:totals"
    assert group_of("a-b", "c") != group_of("a", "b-c")


def test_where_a_query_went_on_from() -> None:
    progress = {"sources": [{"startOffset": {"orders": {"0": 5}}, "endOffset": None}]}
    assert offsets_of(progress, "startOffset") == {TopicPartition("orders", 0): 5}
    assert offsets_of({"sources": [{"startOffset": None}]}, "startOffset") == {}


TOTALS = "moldau-totals"
PLACES = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        for topic in ("orders", "clicks"):
            running.create_topic(topic, partitions=2)
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as opened:
        yield opened


def offsets_now(admin: Admin, group: str) -> dict[TopicPartition, int]:
    found = admin.list_group_offsets(group)
    return {place: at.offset for place, at in found.items() if at is not None}


class Told:
    """A query that tells of one batch."""

    def __init__(self, batch: int, offset: int) -> None:
        self.tell(batch, offset)

    def tell(self, batch: int, offset: int) -> None:
        source = {"startOffset": None, "endOffset": {"orders": {"0": offset}}}
        told = {"runId": "r", "batchId": batch, "sources": [source]}
        self.lastProgress = SimpleNamespace(json=json.dumps(told))
        self.recentProgress = [self.lastProgress]


def test_a_batch_is_told_of_though_its_number_was_told_while_there_was_none(
    broker: Broker, admin: Admin, tmp_path: Path
) -> None:
    app: Any = SimpleNamespace(
        name="shop",
        checkpoints=Checkpoints("shop", str(tmp_path)),
        client_config={"bootstrap.servers": broker.bootstrap_servers},
    )
    query: Any = SimpleNamespace(name="totals", group=None)
    started: Any = Told(6, 5)
    committer = Committer(app)
    committer.watch(query, started)
    deadline = time.monotonic() + 60
    while offsets_now(admin, "moldau-shop:totals") != {PLACES[0]: 5}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started.tell(6, 9)
    committer.finish()
    assert offsets_now(admin, "moldau-shop:totals") == {PLACES[0]: 9}


def test_a_former_group_that_was_the_querys_goes_with_the_upgrade(admin: Admin) -> None:
    stood = dict(zip(PLACES, (5, 7), strict=True))
    admin.alter_group_offsets(TOTALS, stood)
    FormerGroup("totals", stood).hand_over(admin, "moldau-shop:totals")
    assert offsets_now(admin, TOTALS) == {}
    assert TOTALS not in admin.list_groups()


def test_of_a_former_group_only_what_the_query_reads_goes(admin: Admin) -> None:
    stood = dict(zip(PLACES, (5, 7), strict=True))
    other = {TopicPartition("clicks", 0): 3}
    admin.alter_group_offsets(TOTALS, stood | other)
    FormerGroup("totals", stood).hand_over(admin, "moldau-shop:totals")
    assert offsets_now(admin, TOTALS) == other


def test_a_former_group_that_another_app_has_told_last_stays(admin: Admin) -> None:
    told = dict(zip(PLACES, (5, 9), strict=True))
    admin.alter_group_offsets(TOTALS, told)
    mine = FormerGroup("totals", dict(zip(PLACES, (5, 7), strict=True)))
    with pytest.warns(CommitWarning, match="moldau-totals stays as it is"):
        mine.hand_over(admin, "moldau-shop:totals")
    # And that of a query which begins is none of its own.
    FormerGroup("totals", {}).hand_over(admin, "moldau-shop:totals")
    assert offsets_now(admin, TOTALS) == told
