from types import SimpleNamespace
from typing import Any

from moldau.pipelines.streams.waves import in_waves


def query(topic: str, *reads: str) -> Any:
    return SimpleNamespace(topic=topic, sources=[SimpleNamespace(topic=each) for each in reads])


def waves(*queries: Any) -> list[list[str]]:
    return [[each.topic for each in wave] for wave in in_waves(queries)]


def test_queries_run_behind_those_that_they_read() -> None:
    assert waves(query("c", "b"), query("b", "a"), query("x", "a")) == [["b", "x"], ["c"]]


def test_two_that_write_to_one_topic_come_before_its_reader() -> None:
    assert waves(query("t", "a"), query("end", "t"), query("t", "b")) == [["t", "t"], ["end"]]


def test_a_circle_runs_at_once() -> None:
    assert waves(query("a", "b"), query("b", "a"), query("own", "own")) == [["own"], ["a", "b"]]
