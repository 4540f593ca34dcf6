from itertools import count
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.waves import find_circle, find_feeders, in_waves

_numbers = count()


def query(topic: str, *reads: str, name: str | None = None) -> Any:
    plan = SimpleNamespace(topics=reads)
    return SimpleNamespace(name=name or f"{topic}-{next(_numbers)}", topic=topic, plan=plan)


def waves(*queries: Any) -> list[list[str]]:
    return [[each.topic for each in wave] for wave in in_waves(queries)]


def test_queries_run_behind_those_that_they_read() -> None:
    assert waves(query("c", "b"), query("b", "a"), query("x", "a")) == [["b", "x"], ["c"]]


def test_two_that_write_to_one_topic_come_before_its_reader() -> None:
    assert waves(query("t", "a"), query("end", "t"), query("t", "b")) == [["t", "t"], ["end"]]


def test_a_circle_runs_together_and_what_reads_of_it_behind() -> None:
    circle = (query("a", "b", "first"), query("b", "a"), query("own", "own"))
    assert waves(query("end", "b"), *circle, query("first", "in")) == [
        ["own", "first"],
        ["a", "b"],
        ["end"],
    ]


def test_feeders_are_those_of_feeders_too() -> None:
    chain = [query("c", "b", name="c"), query("b", "a", name="b"), query("a", "in", name="a")]
    assert find_feeders(chain) == {"a": set(), "b": {"a"}, "c": {"a", "b"}}
    assert all(not find_circle(find_feeders(chain), name) for name in "abc")
    own = find_feeders([query("t", "t", name="own")])
    assert find_circle(own, "own") == {"own"}


TOPICS = st.sampled_from("abcde")


@given(st.lists(st.tuples(TOPICS, st.sets(TOPICS, max_size=3)), max_size=8))
def test_each_query_comes_once_and_behind_all_that_feed_it(shapes: list[Any]) -> None:
    queries = [query(topic, *sorted(reads)) for topic, reads in shapes]
    found = list(in_waves(queries))
    assert sorted(each.name for wave in found for each in wave) == sorted(q.name for q in queries)
    place = {each.name: number for number, wave in enumerate(found) for each in wave}
    for one in queries:
        for other in queries:
            if other.topic in one.plan.topics and other is not one:
                feeders = find_feeders(queries)
                is_behind = place[other.name] < place[one.name]
                assert is_behind or other.name in find_circle(feeders, one.name)
