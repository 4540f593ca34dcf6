"""Offsets out of Spark's progress."""

from collections.abc import Iterator

import pytest

from moldau import Admin, TopicPartition
from moldau.pipelines.connector.cluster_offsets import CommitWarning
from moldau.pipelines.streams.committing import FormerGroup, group_of, offsets_of
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
def admin() -> Iterator[Admin]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as opened:
        for topic in ("orders", "clicks"):
            broker.create_topic(topic, partitions=2)
        yield opened


def offsets_now(admin: Admin, group: str) -> dict[TopicPartition, int]:
    found = admin.list_group_offsets(group)
    return {place: at.offset for place, at in found.items() if at is not None}


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
