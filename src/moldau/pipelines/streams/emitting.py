"""Whether a query writes every change, or each result once."""

from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.declared import EMITS, Emit, Mode
from moldau.pipelines.streams.plan_text import CUSTOM, NAMED, SparkPlan


class GrowingStateWarning(UserWarning):
    """A query whose state has no end."""


def choose_emit(plan: SparkPlan, emit: Emit | None) -> tuple[Emit, Mode]:
    """Return what a query emits, and Spark's mode for that; an error says what cannot be had.

    Without an aggregate every row is written as it comes, once: in this it is final. Whoever says
    `changes` then says that rows replace those of the same key before them.
    """
    if emit is not None and emit not in EMITS:
        raise OptionError(f"emit={emit}: {' or '.join(EMITS)} is allowed")
    if plan.kept:
        return _emit_kept(plan, emit)
    if not plan.groupings:
        return emit or "final", "update" if plan.updates else "append"
    chosen: Emit = emit or ("final" if plan.is_windowed else "changes")
    if chosen == "final":
        _check_final(plan)
        return chosen, "append"
    _check_changes(plan)
    return chosen, "update"


def _emit_kept(plan: SparkPlan, emit: Emit | None) -> tuple[Emit, Mode]:
    if emit == "final":
        raise PipelineError(
            "emit=final: an aggregate with a ttl gives results whenever rows come, and none of "
            "them is final; leave emit out"
        )
    if plan.state[0] not in plan.kept:
        raise PipelineError(
            "an aggregate with a ttl gives a key's results again and again, which nothing with "
            "state may count behind it; write them to a topic, and read that with app.table"
        )
    return "changes", "append"


def _check_final(plan: SparkPlan) -> None:
    if not plan.is_windowed:
        raise PipelineError(
            "emit=final: without a watermark nothing is ever final; give app.stream event_time and "
            'watermark, and group by a window of that time, or use emit="changes"'
        )


def _check_changes(plan: SparkPlan) -> None:
    if plan.has_sessions:
        raise PipelineError(
            'emit=changes: Spark gives session windows only when they are over; use emit="final", '
            "with a watermark"
        )
    # A join with a table is none of those: it does not depend on the mode.
    built_in = [each for each in plan.state if not each.startswith((*CUSTOM, *NAMED))]
    if len(built_in) > 1:
        raise PipelineError(
            f"emit=changes: Spark cannot update {len(built_in)} operators with state one behind "
            "the other; write the first one's result to a topic, and read that"
        )


def describe_growth(plan: SparkPlan) -> str | None:
    """Return what to tell about a query whose state grows for ever, None if it does not."""
    if plan.groupings and not plan.is_windowed:
        return (
            "an aggregate without a window of event time keeps every key for ever; group by a "
            "window with a watermark, or have keys forgotten by app.aggregate(..., ttl=...)"
        )
    if not plan.forgets_duplicates:
        return (
            "dropDuplicates remembers every row for ever; give app.stream event_time and "
            "watermark, and use dropDuplicatesWithinWatermark, or name that time as a column"
        )
    return None
