"""Which queries of an app are run."""

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.pipelines.supervision.run import choose_queries


def app_of(*queries: tuple[str, str]) -> Any:
    declared = [SimpleNamespace(name=name, topic=topic) for name, topic in queries]
    return SimpleNamespace(name="shop", queries=declared)


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
