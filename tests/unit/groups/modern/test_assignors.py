"""Assignors: every partition once, fair, and with few moves."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.groups.modern.assignors.ranges import assign_ranges
from moldau.groups.modern.assignors.spec import MemberSpec, Specs
from moldau.groups.modern.assignors.uniform import assign_uniformly
from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId

TOPICS = [TopicId(bytes([number]) * 16) for number in range(1, 6)]
A, B = TOPICS[:2]

counts = st.fixed_dictionaries({topic_id: st.integers(1, 12) for topic_id in TOPICS})
member_ids = st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8)
subscriptions = st.frozensets(st.sampled_from(TOPICS))


@st.composite
def groups(draw: st.DrawFn, *, is_same: bool = False) -> tuple[Specs, Mapping[TopicId, int]]:
    """Draw members that have something of an earlier assignment, and perhaps of topics gone."""
    members = sorted(draw(member_ids))
    partition_counts = draw(counts)
    same = draw(subscriptions)
    specs = {
        member_id: MemberSpec(same if is_same else draw(subscriptions)) for member_id in members
    }
    had: dict[str, dict[TopicId, set[int]]] = {member_id: {} for member_id in members}
    for topic_id in TOPICS:
        for index in range(partition_counts[topic_id] + draw(st.integers(0, 2))):
            owner = draw(st.sampled_from([None, *members]))
            if owner is not None:
                had[owner].setdefault(topic_id, set()).add(index)
    return {
        member_id: spec._replace(
            assigned={topic_id: frozenset(indexes) for topic_id, indexes in had[member_id].items()}
        )
        for member_id, spec in specs.items()
    }, partition_counts


def check_every_partition_once(
    specs: Specs, partition_counts: Mapping[TopicId, int], assigned: Mapping[str, Partitions]
) -> None:
    assert assigned.keys() == specs.keys()
    given = Counter(
        (topic_id, index)
        for partitions in assigned.values()
        for topic_id, indexes in partitions.items()
        for index in indexes
    )
    read = {topic_id for spec in specs.values() for topic_id in spec.topic_ids}
    assert given == {
        (topic_id, index): 1 for topic_id in read for index in range(partition_counts[topic_id])
    }
    for member_id, partitions in assigned.items():
        assert partitions.keys() <= specs[member_id].topic_ids
        assert all(partitions.values())


def load(partitions: Partitions) -> int:
    return sum(map(len, partitions.values()))


@pytest.mark.parametrize("assign", [assign_uniformly, assign_ranges])
@given(group=groups())
def test_every_partition_has_one_reader(assign, group) -> None:
    specs, partition_counts = group
    check_every_partition_once(specs, partition_counts, assign(specs, partition_counts))


@given(groups(is_same=True))
def test_members_that_read_the_same_differ_by_one_and_move_little(group) -> None:
    specs, partition_counts = group
    assigned = assign_uniformly(specs, partition_counts)
    check_every_partition_once(specs, partition_counts, assigned)
    loads = [load(partitions) for partitions in assigned.values()]
    assert max(loads) - min(loads) <= 1
    # Nobody loses anything while it has no more than its share.
    for member_id, spec in specs.items():
        had = {
            (topic_id, index)
            for topic_id, indexes in spec.assigned.items()
            for index in indexes
            if topic_id in spec.topic_ids and index < partition_counts[topic_id]
        }
        has = {
            (topic_id, index)
            for topic_id, indexes in assigned[member_id].items()
            for index in indexes
        }
        assert len(had & has) >= min(len(had), *loads)
        if len(had) <= min(loads):
            assert had <= has


@given(groups())
def test_what_is_fair_stays(group) -> None:
    specs, partition_counts = group
    once = assign_uniformly(specs, partition_counts)
    again = assign_uniformly(
        {member_id: spec._replace(assigned=once[member_id]) for member_id, spec in specs.items()},
        partition_counts,
    )
    assert again == once


@given(groups())
def test_no_single_move_makes_it_fairer(group) -> None:
    specs, partition_counts = group
    assigned = assign_uniformly(specs, partition_counts)
    for partitions in assigned.values():
        for topic_id in partitions:
            for taker, spec in specs.items():
                if topic_id in spec.topic_ids:
                    assert load(partitions) - load(assigned[taker]) <= 1


def test_ranges_of_equal_topics_meet() -> None:
    specs = {name: MemberSpec(frozenset({A, B})) for name in ("x", "y", "z")}
    assigned = assign_ranges(specs, {A: 4, B: 4})
    both = [frozenset({0, 1}), frozenset({2}), frozenset({3})]
    assert assigned == {
        name: {A: indexes, B: indexes} for name, indexes in zip("xyz", both, strict=True)
    }


def test_static_members_get_their_ranges_first() -> None:
    specs = {
        "a": MemberSpec(frozenset({A})),
        "z": MemberSpec(frozenset({A}), instance_id="one"),
        "y": MemberSpec(frozenset({A}), instance_id="two"),
    }
    assigned = assign_ranges(specs, {A: 2})
    assert assigned == {"z": {A: frozenset({0})}, "y": {A: frozenset({1})}, "a": {}}


def test_a_newcomer_takes_what_is_above_the_share_of_others() -> None:
    specs = {
        "a": MemberSpec(frozenset({A}), {A: frozenset({0, 1, 2})}),
        "b": MemberSpec(frozenset({A}), {A: frozenset({3, 4, 5})}),
        "c": MemberSpec(frozenset({A})),
    }
    assert assign_uniformly(specs, {A: 6}) == {
        "a": {A: frozenset({0, 1})},
        "b": {A: frozenset({3, 4})},
        "c": {A: frozenset({2, 5})},
    }


def test_nobody_and_nothing() -> None:
    assert assign_uniformly({}, {}) == assign_ranges({}, {}) == {}
    assert assign_uniformly({"a": MemberSpec(frozenset())}, {}) == {"a": {}}
