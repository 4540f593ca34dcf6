"""Regular expressions for topics: what a heartbeat says before and after they were looked for."""

from collections.abc import Hashable

import pytest

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.timers import RegexTimer
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
)
from tests.unit.groups.consumer.world import G, World, assigned, heartbeat, join

TIMER: tuple[type, Hashable] = (RegexTimer, RegexTimer(G))


@pytest.fixture
def world() -> World:
    world = World()
    world.create("t", 4)
    return world


def look(world: World) -> None:
    """Let what is to be looked for at once be looked for."""
    assert TIMER in world.timers
    world.sleep(0)
    assert TIMER not in world.timers


def beat(world: World, member_id: str, **fields: object) -> dict[TopicId, frozenset[int]] | None:
    member = world.group().members[member_id]
    owned = {topic_id: frozenset(indexes) for topic_id, indexes in member.assigned.items()}
    return assigned(world.ask(heartbeat(member_id, member.epoch, owned, **fields)))


def test_the_topics_of_an_expression_come_with_a_later_heartbeat(world: World) -> None:
    named, found = world.create("named", 1), world.create("topic", 2)
    answer = world.ask(join("a", "named", subscribed_topic_regex="to.*"))
    assert assigned(answer) == {named: {0}}
    assert not world.group().regexes
    epoch = world.group().epoch
    look(world)
    assert world.group().regexes == {"to.*": {"topic"}}
    assert world.group().epoch == epoch + 1
    assert beat(world, "a") == {named: {0}, found: {0, 1}}
    assert world.group().members["a"].epoch == epoch + 1


def test_who_has_nothing_but_a_new_expression_makes_no_epoch(world: World) -> None:
    world.ask(join("a", "t"))
    epoch = world.group().epoch
    answer = world.ask(join("b", subscribed_topic_regex="t"))
    assert (answer.member_epoch, assigned(answer)) == (epoch, {})
    look(world)
    assert world.group().epoch == epoch + 1


def test_an_epoch_whose_expressions_are_lost_is_followed_by_another(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", subscribed_topic_regex="t"))
    decision = world.machine.expire(RegexTimer(G), world.now)
    kinds = [type(record.key) for record in decision.records]
    assert kinds == [ConsumerGroupMetadataKey, ConsumerGroupRegularExpressionKey]
    world.append(decision.records[:1])
    world.restart()
    beat(world, "b")
    look(world)
    for _ in range(3):
        for member_id in ("a", "b"):
            beat(world, member_id)
    assert all(member.assigned for member in world.group().members.values())


def test_an_expression_without_topics_makes_no_epoch(world: World) -> None:
    world.ask(join("a", "t", subscribed_topic_regex="none"))
    epoch = world.group().epoch
    look(world)
    assert world.group().regexes == {"none": frozenset()}
    assert world.group().epoch == epoch


def test_an_expression_that_is_known_is_not_looked_for_again(world: World) -> None:
    world.ask(join("a", subscribed_topic_regex="t"))
    look(world)
    epoch = world.group().epoch
    world.ask(join("b", subscribed_topic_regex="t"))
    assert world.group().epoch == epoch + 1
    assert TIMER not in world.timers


def test_others_wait_ten_seconds_after_the_last(world: World) -> None:
    world.ask(join("a", subscribed_topic_regex="t"))
    look(world)
    world.create("u")
    world.ask(join("b", subscribed_topic_regex="u"))
    assert TIMER not in world.timers
    world.sleep(10)
    beat(world, "a")
    look(world)
    assert world.group().regexes == {"t": {"t"}, "u": {"u"}}


def test_new_topics_are_looked_for_at_most_every_ten_seconds(world: World) -> None:
    world.ask(join("a", subscribed_topic_regex="t.*"))
    look(world)
    beat(world, "a")
    world.create("tomato", 3)
    beat(world, "a")
    assert TIMER not in world.timers
    world.sleep(10)
    beat(world, "a")
    look(world)
    assert world.group().regexes == {"t.*": {"t", "tomato"}}
    world.sleep(10)
    beat(world, "a")
    assert TIMER not in world.timers


def test_expressions_are_looked_for_from_time_to_time() -> None:
    world = World(group_consumer_regex_refresh_interval_ms="60000")
    world.ask(join("a", subscribed_topic_regex="t"))
    look(world)
    world.sleep(30)
    beat(world, "a")
    assert TIMER not in world.timers
    world.sleep(30)
    beat(world, "a")
    recorded = len(world.log)
    look(world)
    assert len(world.log) == recorded, "nothing is new"


def test_a_topic_that_goes_makes_one_epoch(world: World) -> None:
    world.create("tomato")
    world.ask(join("a", subscribed_topic_regex="t.*"))
    look(world)
    beat(world, "a")
    world.delete("tomato")
    world.sleep(10)
    epoch = world.group().epoch
    beat(world, "a")
    look(world)
    assert world.group().regexes == {"t.*": {"t"}}
    assert world.group().epoch == epoch + 1


def test_who_changes_its_expression_gives_up_at_once_and_gets_later(world: World) -> None:
    topic, other = world.create("topic", 2), world.create("other", 2)
    world.ask(join("a", subscribed_topic_regex="to.*"))
    look(world)
    assert beat(world, "a") == {topic: {0, 1}}
    epoch = world.group().epoch
    assert beat(world, "a", subscribed_topic_regex="other") == {}
    assert not world.group().regexes
    assert world.group().epoch == epoch
    look(world)
    assert world.group().epoch == epoch + 1
    assert beat(world, "a") == {other: {0, 1}}


def test_an_expression_stays_as_long_as_somebody_has_it(world: World) -> None:
    world.ask(join("a", subscribed_topic_regex="t"))
    world.ask(join("b", subscribed_topic_regex="t"))
    look(world)
    world.ask(heartbeat("a", -1))
    assert world.group().regexes == {"t": {"t"}}
    assert world.group().is_subscribed_to("t")
    epoch = world.group().epoch
    beat(world, "b", subscribed_topic_regex="")
    assert not world.group().regexes
    assert not world.group().is_subscribed_to("t")
    assert world.group().epoch == epoch + 1


def test_who_left_in_the_meantime_has_nothing_looked_for(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", subscribed_topic_regex="t"))
    world.ask(heartbeat("b", -1))
    recorded = len(world.log)
    look(world)
    assert len(world.log) == recorded
    world.ask(join("b", subscribed_topic_regex="t"))
    world.ask(heartbeat("b", -1))
    world.ask(heartbeat("a", -1))
    recorded = len(world.log)
    look(world)
    assert len(world.log) == recorded
    assert not world.group().regexes


def test_a_coordinator_that_comes_after_looks_at_the_next_heartbeat(world: World) -> None:
    world.ask(join("a", subscribed_topic_regex="t"))
    world.restart()
    assert TIMER not in world.timers
    beat(world, "a")
    look(world)
    assert world.group().regexes == {"t": {"t"}}


def test_more_topics_than_a_record_holds_are_not_found_and_nobody_else_notices(
    world: World,
) -> None:
    for number in range(30):
        world.create(f"topic-{number}", 1)
    world.context.record_bytes_max = 200
    world.ask(join("a", subscribed_topic_regex="topic.*"))
    world.ask(join("b", subscribed_topic_regex="t"))
    look(world)
    assert world.group().regexes == {"t": {"t"}}


@pytest.mark.parametrize(
    "regex", ["(", "(?=a)", "(a)\\1", "a{1001}", "((a{100}){100}){100}", "[b-a]", "*"]
)
def test_what_is_no_expression_is_refused(world: World, regex: str) -> None:
    answer = world.ask(join("a", subscribed_topic_regex=regex))
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert G not in world.machine.shelf.groups
    assert TIMER not in world.timers


def test_an_expression_that_backtracks_elsewhere_takes_no_time(world: World) -> None:
    world.create("a" * 249, 1)
    world.ask(join("m", subscribed_topic_regex="(a*)*(a*)*(a*)*b"))
    look(world)
    assert world.group().regexes == {"(a*)*(a*)*(a*)*b": frozenset()}
