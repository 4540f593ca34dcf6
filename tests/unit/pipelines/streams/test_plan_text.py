"""What is read out of Spark's explanations, on texts that Spark has given."""

from moldau.pipelines.streams.emitting import choose_emit
from moldau.pipelines.streams.plan_text import read_plan

RELATION = (
    "~StreamingRelationV2 org.apache.PythonDataSourceV2@12ee448d, moldau, org.PythonTable@4, "
    "[startingOffsets=earliest, kafka.bootstrap.servers=127.0.0.1:45949, subscribe={}], "
    "[key#0, value#1], name=<Unassigned>"
)
HEAD = """== Parsed Logical Plan ==
'Aggregate ['user], ['user]
+- 'Nonsense

== Analyzed Logical Plan ==
user: string, Aggregate: bigint
"""
TAIL = """

== Optimized Logical Plan ==
~Aggregate [other#1], [other#1]
"""


def explained(*lines: str) -> str:
    return HEAD + "\n".join(lines) + TAIL


WINDOWED = explained(
    "~Filter (total#18 > cast(3 as double))",
    "+- ~Aggregate [user#15, window#26-T10000ms], [user#15, window#26-T10000ms, "
    "sum(amount#16) AS total#18]",
    "   +- ~EventTimeWatermark 7bfc68e4-2fb8-4244-8b2d-5b84f2eaf02e, at#17: timestamp, 10 seconds",
    "      +- " + RELATION.format("orders"),
)


def test_a_window_with_a_watermark() -> None:
    plan = read_plan(WINDOWED)
    assert plan.topics == ("orders",)
    assert plan.groupings == ("user#15, window#26-T10000ms",)
    assert plan.state == ("Aggregate [user, window], [user, window, sum(amount)]",)
    assert plan.is_windowed
    assert not plan.has_sessions
    assert not plan.updates


def test_state_does_not_depend_on_numbers_names_and_delays() -> None:
    other = WINDOWED.replace("#16", "#99").replace("AS total", "AS sum").replace("10000", "5000")
    assert read_plan(other).state == read_plan(WINDOWED).state
    assert read_plan(WINDOWED.replace("sum(", "avg(")).state != read_plan(WINDOWED).state


def test_an_aggregate_without_a_watermark() -> None:
    plan = read_plan(
        explained(
            "~Aggregate [user#1], [user#1, count(1) AS count#3L]", "+- " + RELATION.format("t")
        )
    )
    assert plan.groupings == ("user#1",)
    assert not plan.is_windowed


def test_sessions() -> None:
    plan = read_plan(
        explained("~Aggregate [session_window#5-T10ms], [count(1) AS n#3L]", "+- ~Project [a#1]")
    )
    assert plan.has_sessions
    assert plan.is_windowed


def test_a_join_with_a_batch_keeps_no_state() -> None:
    stream = ":- ~Project [a#1]\n:  +- " + RELATION.format("left")
    other = "+- ~Project [b#2]\n   +- " + RELATION.format("right")
    both = read_plan(explained("~Join Inner, (a#1 = b#2)", stream, other))
    assert both.topics == ("left", "right")
    assert both.state == ("Join Inner, (a = b)",)
    static = read_plan(explained("~Join Inner, (a#1 = b#2)", stream, "+- Range (0, 3)"))
    assert static.topics == ("left",)
    assert static.state == ()


def test_state_of_ones_own() -> None:
    line = (
        "~TransformWithStateInPySpark f(a#0)#2, 1, [a#3], {}, NoTime, python_row, false, 0\n"
        ":- ~Project [a#1]\n+- LocalRelation <empty>"
    )
    append, update = (read_plan(explained(line.format(mode))) for mode in ("Append", "Update"))
    assert append.state == update.state == ("TransformWithStateInPySpark",)
    assert (append.updates, update.updates) == (False, True)


def test_what_rows_are_unique_by() -> None:
    lines = ("~Deduplicate [id#1, at#2-T10000ms]", "~DeduplicateWithinWatermark [id#1]")
    plans = [read_plan(explained(line, "+- " + RELATION.format("t"))) for line in lines]
    assert [plan.unique_by for plan in plans] == [("id#1, at#2-T10000ms",), ()]
    assert plans[0].state == ("Deduplicate [id, at]",)


def test_an_aggregate_that_forgets() -> None:
    plan = read_plan(
        explained(
            "~Project [__key#1.user AS user#2, r0#3L AS orders#4L]",
            "+- ~SubqueryAlias `kept by app.aggregate: count(*): bigint by user: string`",
            "   +- ~TransformWithStateInPySpark f(a#0)#2, 1, [a#3], Append, ProcessingTime, row",
            "      +- " + RELATION.format("t"),
        )
    )
    assert plan.state == plan.kept == ("count(*): bigint by user: string",)
    assert plan.goes_by_clock
    assert plan.groupings == ()
    # A name that a user gives is none of that.
    other = read_plan(
        explained("~SubqueryAlias kept", "+- ~TransformWithStateInPySpark f(a#0)#2, Append, NoTime")
    )
    assert other.state == ("TransformWithStateInPySpark",)
    assert other.kept == ()
    assert not other.goes_by_clock


def test_an_aggregate_over_a_table() -> None:
    groups = "groups of a table: count(*): bigint by city: string"
    plan = read_plan(
        explained(
            f"~SubqueryAlias `{groups}`",
            "+- ~TransformWithStateInPySpark f(a#0)#2, 1, [a#3], Append, NoTime, row",
            "   +- " + RELATION.format("t"),
        )
    )
    assert plan.state == (groups,)
    assert plan.kept == ()
    assert choose_emit(plan, None) == ("final", "append")


def test_rows_that_nothing_is_kept_of() -> None:
    plan = read_plan(explained("~Filter (a#1 > 3)", "+- " + RELATION.format("t")))
    assert plan == read_plan(explained("~Project [a#1]", "+- " + RELATION.format("t")))
    assert plan.state == ()
    assert plan.groupings == ()
