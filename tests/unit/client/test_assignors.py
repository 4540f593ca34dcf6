from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.assignors import (
    ASSIGNORS,
    ClientAssignor,
    assign_range,
    assign_round_robin,
    parse_strategy,
)
from moldau.client.errors import ConfigError
from moldau.client.member_metadata import Subscription, encode_sticky
from moldau.client.sticky_assignment import assign_sticky, assign_sticky_cooperatively
from moldau.client.subscribers import Assignments, Subscriber
from moldau.kernel.ids import TopicPartition

TOPICS = ["a", "b", "c"]
counts_of_topics = st.fixed_dictionaries({}, optional={each: st.integers(0, 7) for each in TOPICS})
wishes = st.lists(st.sets(st.sampled_from(TOPICS)), min_size=1, max_size=6)


def members_of(
    wanted: Sequence[set[str]], had: Assignments | None = None, generation: int = 1
) -> list[Subscriber]:
    members = []
    for number, topics in enumerate(wanted):
        owned = (had or {}).get(f"m{number}", [])
        data = encode_sticky(owned, generation)
        subscription = Subscription(sorted(topics), owned, generation, user_data=data)
        members.append(Subscriber(f"m{number}", subscription))
    return members


def check_shared_out(
    counts: Mapping[str, int], members: Sequence[Subscriber], found: Assignments
) -> None:
    assert set(found) == {each.member_id for each in members}
    wanted = {each.member_id: each.subscription.topics for each in members}
    given_out = [key for keys in found.values() for key in keys]
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) == {
        TopicPartition(topic, number)
        for topic, count in counts.items()
        if any(topic in topics for topics in wanted.values())
        for number in range(count)
    }
    for member_id, keys in found.items():
        assert all(key.topic in wanted[member_id] for key in keys)


def is_even(found: Assignments) -> bool:
    sizes = [len(keys) for keys in found.values()]
    return max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: each.name)
@given(counts=counts_of_topics, wanted=wishes)
def test_each_partition_has_one_reader(
    assignor: ClientAssignor, counts: dict[str, int], wanted: list[set[str]]
) -> None:
    members = members_of(wanted)
    check_shared_out(counts, members, assignor.assign(counts, members))


@given(counts=counts_of_topics, sizes=st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_sticky_members_keep_what_they_can(counts: dict[str, int], sizes: tuple[int, int]) -> None:
    before = assign_sticky(counts, members_of([set(TOPICS)] * sizes[0]))
    assert is_even(before)
    members = members_of([set(TOPICS)] * sizes[1], before)
    after = assign_sticky(counts, members)
    check_shared_out(counts, members, after)
    assert is_even(after)
    total = sum(map(len, after.values()))
    for member in members:
        had, has = set(before.get(member.member_id, ())), set(after[member.member_id])
        # Nobody gets something new while others have to give something up for it in vain.
        assert had <= has or has <= had
        assert len(has & had) >= min(len(had), total // len(members))


@given(counts=counts_of_topics, first=wishes, second=wishes)
def test_cooperative_members_get_what_others_have_given_up(
    counts: dict[str, int], first: list[set[str]], second: list[set[str]]
) -> None:
    had = assign_sticky_cooperatively(counts, members_of(first))
    for _ in range(3):
        members = members_of(second, had)
        held = {key: member_id for member_id, keys in had.items() for key in keys}
        found = assign_sticky_cooperatively(counts, members)
        for member_id, keys in found.items():
            for key in keys:
                holder = held.get(key, member_id)
                is_here = any(each.member_id == holder for each in members)
                assert holder == member_id or not is_here, "taken from who reads it"
        # Members give up what they are not given any more, and join again.
        had = found
    check_shared_out(counts, members, found)


def test_of_two_who_claim_a_partition_the_newer_one_has_it() -> None:
    key = TopicPartition("a", 0)

    def assign(generations: Sequence[int]) -> Assignments:
        members = [
            Subscriber(f"m{n}", Subscription(["a"], [key], generation))
            for n, generation in enumerate(generations)
        ]
        return assign_sticky_cooperatively({"a": 1}, members)

    assert assign([4, 5]) == {"m0": [], "m1": [key]}
    assert assign([5, 4]) == {"m0": [key], "m1": []}
    assert sum(map(len, assign([5, 5]).values())) == 1


def test_static_members_have_their_places_by_name() -> None:
    members = [
        Subscriber("z", Subscription(["a"]), "first"),
        Subscriber("y", Subscription(["a"]), "second"),
        Subscriber("x", Subscription(["a"])),
    ]
    found = assign_range({"a": 4}, members)
    assert {each: [key.partition for key in found[each]] for each in found} == {
        "z": [0, 1],
        "y": [2],
        "x": [3],
    }
    dealt = assign_round_robin({"a": 4}, members)
    assert [key.partition for key in dealt["z"]] == [0, 3]


def test_a_strategy_is_named_by_name_or_class() -> None:
    text = " cooperative-sticky, org.apache.kafka.clients.consumer.RangeAssignor"
    assert [each.name for each in parse_strategy(text)] == ["cooperative-sticky", "range"]
    for wrong in (
        "",
        "fair",
        "range,range",
        "range,org.apache.kafka.clients.consumer.RangeAssignor",
    ):
        with pytest.raises(ConfigError, match=r"partition\.assignment\.strategy"):
            parse_strategy(wrong)
