"""Which queries of an app are run."""

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipelines.errors import PipelineError, RetriableError
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.pipelines.supervision.run import DeclaredApp, choose_queries


def app_of(*queries: tuple[str, str]) -> Any:
    declared = [SimpleNamespace(name=name, topic=topic) for name, topic in queries]
    stops: list[str] = []
    return SimpleNamespace(
        name="shop",
        queries=declared,
        stops=stops,
        stop=lambda: stops.append("stopped"),
        start_query=lambda query, once: (query, once),
    )


def test_all_or_those_that_are_wanted() -> None:
    app = app_of(("totals", "totals"), ("views", "views"))
    assert list(choose_queries(app, ())) == ["totals", "views"]
    assert list(choose_queries(app, ["views"])) == ["views"]
    with pytest.raises(PipelineError, match="shop has no query clicks: it has totals, views"):
        choose_queries(app, ["clicks"])


def test_a_backfill_into_one_topic_is_of_one_query() -> None:
    app = app_of(("totals@again@0-", "again"), ("views@again@0-", "again"))
    with run_with(RunOptions(into="again")):
        assert list(choose_queries(app, ["totals"])) == ["totals@again@0-"]
        with pytest.raises(PipelineError, match=r"into=again: .*several queries; write \{query\}"):
            choose_queries(app, ())


def test_an_app_is_made_again_for_another_session() -> None:
    before, after = app_of(("totals", "totals")), app_of(("totals", "totals"), ("new", "new"))
    declared = DeclaredApp(before, (), lambda: after, once=True)
    declared.reopen()
    assert before.stops == ["stopped"]
    assert declared.start_query("totals") == (after.queries[0], True)
    declared.stop()
    assert after.stops == ["stopped"]


def test_a_query_that_is_not_made_again_ends_the_run() -> None:
    app = app_of(("totals", "totals"), ("views", "views"))
    declared = DeclaredApp(app, (), lambda: app_of(("totals", "totals")), once=False)
    with pytest.raises(PipelineError, match="has no query views any more: start the program"):
        declared.reopen()


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (None, PipelineError),
        (PipelineError("there is no topic orders"), PipelineError),
        (NameError("name 'order' is not defined"), RetriableError),
    ],
)
def test_a_file_that_fails_may_be_tried_again(
    cause: Exception | None, kind: type[Exception]
) -> None:
    def declare() -> Any:
        raise PipelineError("shop.py:3: it failed") from cause

    declared = DeclaredApp(app_of(("totals", "totals")), (), declare, once=False)
    with pytest.raises(PipelineError, match=r"shop\.py:3: it failed") as caught:
        declared.reopen()
    assert type(caught.value) is kind
