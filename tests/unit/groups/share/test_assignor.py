"""Who reads what: everybody something, everything by somebody."""

from math import ceil
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from moldau.groups.share.assignor import assign
from moldau.kernel.ids import TopicId

if TYPE_CHECKING:
    from moldau.groups.modern.partitions import Partitions

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)


def test_more_partitions_than_members() -> None:
    topics = {T: frozenset(range(5))}
    result = assign(dict.fromkeys("ab", frozenset({T})), topics, {})
    assert sorted(len(each[T]) for each in result.values()) == [2, 3]


def test_more_members_than_partitions() -> None:
    topics = {T: frozenset(range(2))}
    result = assign(dict.fromkeys("abc", frozenset({T})), topics, {})
    readers = [sum(index in each[T] for each in result.values()) for index in range(2)]
    assert readers == [2, 2]


def test_others_topics_are_not_assigned() -> None:
    topics = {T: frozenset({0}), U: frozenset({0})}
    result = assign({"a": frozenset({T}), "b": frozenset({T, U})}, topics, {})
    assert result["a"] == {T: {0}}
    assert U in result["b"]


def test_who_has_what_lacks_a_reader_swaps() -> None:
    topics = {T: frozenset(range(2))}
    before = {"a": {T: frozenset({0})}, "b": {T: frozenset({1})}, "c": {T: frozenset({1})}}
    result = assign(dict.fromkeys("abc", frozenset({T})), topics, before)
    assert sorted(len(each[T]) for each in result.values()) == [1, 1, 2]
    readers = [sum(index in each[T] for each in result.values()) for index in range(2)]
    assert readers == [2, 2]


members = st.sets(st.sampled_from("abcdefgh"), min_size=1)


@given(st.lists(st.tuples(members, st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=5))
def test_it_stays_even(rounds: list[tuple[set[str], int, int]]) -> None:
    before: dict[str, Partitions] = {}
    for names, t_count, u_count in rounds:
        topics = {T: frozenset(range(t_count)), U: frozenset(range(u_count))}
        subscriptions = dict.fromkeys(sorted(names), frozenset({T, U}))
        result = assign(subscriptions, topics, before)
        sizes = [sum(map(len, each.values())) for each in result.values()]
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1
        readers = {
            sum(index in each.get(topic, ()) for each in result.values())
            for topic, indexes in topics.items()
            for index in indexes
        }
        assert readers == {ceil(len(names) / (t_count + u_count))}
        again = assign(subscriptions, topics, result)
        assert again == result
        before = result
