"""What Spark does for a query, in lines for EXPLAIN."""

from moldau.pipelines.streams.declared import Mode
from moldau.pipelines.streams.plan_text import CUSTOM, GROUPS, SparkPlan


def describe_plan(plan: SparkPlan, mode: Mode) -> str:
    """Return what is read, what is kept, and when something comes of it."""
    lines = [f"Spark reads {', '.join(dict.fromkeys(plan.topics))}, as they grow"]
    kept = list(dict.fromkeys(map(_state, plan.state)))
    lines.append(f"State: {', '.join(kept)}" if kept else "State: none")
    if plan.groupings and not plan.is_windowed:
        lines.append("Every group is kept for ever: there is no window with a watermark")
    if plan.groupings:
        when = "every change" if mode == "update" else "each result once, when it is final"
        lines.append(f"Emits {when}")
    return "\n".join(lines)


def _state(signature: str) -> str:
    if signature.startswith(CUSTOM):
        return "the joined tables"
    if signature.startswith(GROUPS):
        return "the groups, and what each row has added to its own"
    word = signature.partition(" ")[0]
    return {
        "Aggregate": "one row for each group",
        "Join": "rows of both streams, for as long as they may meet",
    }.get(word, "the rows that were seen")
