"""What EXPLAIN says of a plan."""

from moldau.pipelines.sql.spark.plan_lines import describe_plan
from moldau.pipelines.streams.plan_text import SparkPlan


def test_a_filter_keeps_nothing() -> None:
    plan = SparkPlan(("orders",), (), (), updates=False)
    assert describe_plan(plan, "append") == "Spark reads orders, as they grow\nState: none"


def test_groups_of_joined_tables() -> None:
    custom = "TransformWithStateInPySpark"
    state = ("groups of a table: sum(n)", "groups of a table: what each row adds", custom, custom)
    plan = SparkPlan(("orders", "users"), state, (), updates=False)
    assert describe_plan(plan, "append").splitlines()[1] == (
        "State: the groups, and what each row has added to its own, the joined tables"
    )


def test_what_is_kept_and_when_it_is_told() -> None:
    state = ("Aggregate [window]", "TransformWithStateInPySpark", "Join Inner")
    plan = SparkPlan(("orders", "users", "orders"), state, ("window#1-T10000ms",), updates=False)
    assert describe_plan(plan, "append").splitlines() == [
        "Spark reads orders, users, as they grow",
        (
            "State: one row for each group, the joined tables, rows of both streams, for as long "
            "as they may meet"
        ),
        "Emits each result once, when it is final",
    ]
