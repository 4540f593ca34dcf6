"""Which results a query writes, by what it does."""

import pytest

from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.emitting import choose_emit, describe_growth
from moldau.pipelines.streams.plan_text import SparkPlan

ROWS = SparkPlan(("t",), (), (), updates=False)
WINDOW = SparkPlan(("t",), ("Aggregate",), ("window#1-T10ms",), updates=False)
TOTAL = SparkPlan(("t",), ("Aggregate",), ("user#1",), updates=False)
SESSION = SparkPlan(("t",), ("Aggregate",), ("session_window#1-T10ms",), updates=False)
CHAIN = SparkPlan(("t",), ("Aggregate", "Deduplicate"), ("window#1-T10ms",), updates=False)
JOINED = SparkPlan(("t",), ("TransformWithState", "Aggregate"), ("user#1",), updates=False)
UPDATING = SparkPlan(("t",), ("TransformWithState",), (), updates=True)
KEPT = SparkPlan(
    ("t",), ("sum(n)", "Join"), (), updates=False, kept=("sum(n)",), goes_by_clock=True
)
COUNTED = SparkPlan(("t",), ("Aggregate", "sum(n)"), ("n#1",), updates=False, kept=("sum(n)",))
UNIQUE = SparkPlan(("t",), ("Deduplicate [id]",), (), updates=False, unique_by=("id#1",))
UNIQUE_IN_TIME = SparkPlan(
    ("t",), ("Deduplicate [id, at]",), (), updates=False, unique_by=("id#1, at#2-T10ms",)
)


def test_defaults() -> None:
    assert choose_emit(ROWS, None) == ("final", "append")
    assert choose_emit(WINDOW, None) == ("final", "append")
    assert choose_emit(TOTAL, None) == ("changes", "update")
    assert choose_emit(SESSION, None) == ("final", "append")
    assert choose_emit(CHAIN, None) == ("final", "append")
    assert choose_emit(UPDATING, None) == ("final", "update")
    assert choose_emit(KEPT, None) == ("changes", "append")


def test_what_was_chosen() -> None:
    assert choose_emit(ROWS, "changes") == ("changes", "append")
    assert choose_emit(WINDOW, "changes") == ("changes", "update")
    assert choose_emit(JOINED, "changes") == ("changes", "update")


def test_what_cannot_be_had() -> None:
    with pytest.raises(OptionError, match="emit=always: changes or final is allowed"):
        choose_emit(ROWS, "always")  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="without a watermark nothing is ever final"):
        choose_emit(TOTAL, "final")
    with pytest.raises(PipelineError, match=r'session windows only .* use emit="final"'):
        choose_emit(SESSION, "changes")
    with pytest.raises(PipelineError, match="write the first one's result to a topic"):
        choose_emit(CHAIN, "changes")
    with pytest.raises(PipelineError, match=r"an aggregate with a ttl .* leave emit out"):
        choose_emit(KEPT, "final")
    with pytest.raises(PipelineError, match=r"again and again, .* read that with app.table"):
        choose_emit(COUNTED, None)


def test_what_grows() -> None:
    assert describe_growth(ROWS) is None
    assert describe_growth(WINDOW) is None
    assert describe_growth(KEPT) is None
    assert describe_growth(UNIQUE_IN_TIME) is None
    assert "use dropDuplicatesWithinWatermark" in (describe_growth(UNIQUE) or "")
    assert "keeps every key for ever" in (describe_growth(TOTAL) or "")
    assert "app.aggregate(..., ttl=...)" in (describe_growth(TOTAL) or "")
