"""Offsets out of Spark's progress."""

from moldau import TopicPartition
from moldau.pipelines.streams.committing import group_of, offsets_of


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


def test_groups() -> None:
    assert group_of("totals") == "moldau-totals"
