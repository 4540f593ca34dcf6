"""Offsets as JSON: what Spark keeps, and what users write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.offsets import (
    from_json,
    parse_numbers,
    parse_partitions,
    to_json,
)
from moldau.pipelines.errors import OptionError

KEYS = st.builds(TopicPartition, st.sampled_from(["a", "b", "c.d"]), st.integers(0, 12))


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    assert list(to_json(offsets)) == ["a", "b"]
    assert to_json(offsets) == {"a": {"0": 3}, "b": {"9": 2, "10": 1}}
    assert list(to_json(offsets)["b"]) == ["9", "10"]


@given(st.dictionaries(KEYS, st.integers(0, 2**62)))
def test_offsets_come_back(offsets: dict[TopicPartition, int]) -> None:
    assert from_json(to_json(offsets)) == offsets


def test_users_write_offsets_edges_and_times() -> None:
    assert parse_numbers("startingOffsets", '{"t":{"0":5,"1":-2}}', least=-2) == {
        TopicPartition("t", 0): 5,
        TopicPartition("t", 1): -2,
    }
    assert parse_partitions("assign", '{"t":[1,0]}') == [("t", 0), ("t", 1)]


@pytest.mark.parametrize(
    "text",
    ["", "5", "[]", "{}", "{", '{"t":5}', '{"t":{}}', '{"t":{"x":5}}', '{"t":{"0":"5"}}',
     '{"t":{"0":-3}}', '{"t":{"-1":0}}', '{"t":{"0":true}}', '{"t":{"0":1.5}}'],
)  # fmt: skip
def test_what_is_no_json_of_offsets_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"option startingOffsets=.*JSON such as"):
        parse_numbers("startingOffsets", text, least=-2)


@pytest.mark.parametrize("text", ["", "t", "[]", "{}", '{"t":0}', '{"t":[]}', '{"t":["x"]}'])
def test_what_is_no_json_of_partitions_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"option assign=.*JSON such as"):
        parse_partitions("assign", text)
