"""What tests of apps can do: send, run, look, go on; the app is the guide's."""

import importlib.util
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines import App, PipelineError
from moldau.pipelines import functions as F  # noqa: N812 - as everybody does
from moldau.testing import Pipeline

Start = Callable[..., Pipeline]

MINUTE = {"start": "2026-01-01T00:00:00.000000Z", "end": "2026-01-01T00:01:00.000000Z"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, spark: object) -> App:
    """The app of the guide's file, imported as a test of a user's would."""
    guide = Path("docs/streams.md").read_text()
    example = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[0]
    path = tmp_path_factory.mktemp("app") / "orders.py"
    path.write_text(example)
    spec = importlib.util.spec_from_file_location("orders", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: App = module.app
    assert made.bootstrap == "localhost:9092"
    return made


def order(number: int, user: str, second: int, amount: float = 1.0) -> dict[str, Any]:
    at = datetime(2026, 1, 1, 0, second // 60, second % 60, tzinfo=UTC)
    return {"id": f"o{number}", "user": user, "amount": amount, "at": at}


def test_rows_windows_and_tables(pipeline: Start, app: App) -> None:
    with pipeline(app) as t:
        t.send("users", [{"user": "ann", "name": "Ann", "city": "Prague"}])
        t.send("orders", [order(1, "ann", 1, 2.5), order(2, "ann", 2, 4)], key="id")
        t.run()
        assert t.rows("totals") == []
        assert [(each["id"], each["city"]) for each in t.rows("orders-enriched")] == [
            ("o1", "Prague"),
            ("o2", "Prague"),
        ]
        assert [each.key for each in t.records("orders")] == [b"o1", b"o2"]
        t.advance("at", "10 minutes")
        t.run()
        assert t.rows("totals") == [{"user": "ann", "window": MINUTE, "total": 6.5}]
        assert t.table("users").get("ann") == {"name": "Ann", "city": "Prague"}
        # The time itself is no row, of no topic.
        assert len(t.rows("orders-enriched")) == len(t.rows("orders")) == 2


def test_a_restart_goes_on_from_the_checkpoint(pipeline: Start, app: App) -> None:
    with pipeline(app) as t:
        t.send("users", [{"user": "ann", "name": "Ann", "city": "Prague"}])
        t.send("orders", [order(1, "ann", 1, 2.5)])
        t.run()
        t.restart()
        t.delete("users", "ann")
        t.send("orders", [order(2, "ann", 2, 4)])
        t.run()
        t.advance("at", "2 min")
        t.run()
        assert t.rows("totals") == [{"user": "ann", "window": MINUTE, "total": 6.5}]
        assert [each["city"] for each in t.rows("orders-enriched")] == ["Prague", None]
        assert t.table("users").get("ann") is None


def make_chain() -> App:
    """Make an app of which one query reads what the other writes, and comes first.

    A third one reads what it writes itself.
    """
    app = App("chain")
    loud = app.stream("loud", schema="word string")
    app.to(loud.select(F.concat("word", F.lit("!")).alias("word")), "louder", key="word")
    words = app.stream("words", schema="word string", key="id int")
    app.to(words.select(F.upper("word").alias("word")), "loud")
    short = app.stream("louder", schema="word string").where("length(word) < 7")
    app.to(short.selectExpr("concat(word, '!') AS word"), "louder", key="word", name="again")
    return app


def test_a_query_sees_what_another_has_written(pipeline: Start) -> None:
    with pipeline(make_chain, partitions=2) as t:
        t.send("words", [{"id": 1, "word": "ahoj"}])
        t.run()
        assert sorted(each["word"] for each in t.rows("louder")) == ["AHOJ!", "AHOJ!!", "AHOJ!!!"]
        assert {each.key for each in t.records("louder")} == {b"AHOJ!", b"AHOJ!!", b"AHOJ!!!"}
        assert t.broker.topics()["louder"] == 2


def test_mistakes_are_named(pipeline: Start) -> None:
    with pytest.raises(PipelineError, match="app lone was made by a function"):
        pipeline(App("lone"))
    with pipeline(make_chain) as t:
        with pytest.raises(PipelineError, match="reads loud, louder, words"):
            t.send("verbs", [])
        with pytest.raises(PipelineError, match="a row has no id, which is its key"):
            t.send("words", [{"word": "ahoj"}])
        with pytest.raises(PipelineError, match="no stream has event_time=at; there is none"):
            t.advance("at", "1 min")
        with pytest.raises(PipelineError, match="there is no topic louder: there are words"):
            t.rows("louder")
        with pytest.raises(PipelineError, match="topic loud is no table of app chain"):
            t.table("loud")


def test_time_begins_with_the_first_row(pipeline: Start, app: App) -> None:
    with (
        pipeline(app) as t,
        pytest.raises(PipelineError, match="no row with at was sent yet"),
    ):
        t.advance("at", "1 min")


def test_a_query_that_fails_is_one_line(pipeline: Start) -> None:
    def make() -> App:
        app = App("broken")
        app.to(app.stream("words", schema="word string"), "out")
        return app

    with pipeline(make) as t:
        t.send("words", ["{"])
        with pytest.raises(
            PipelineError, match=r"^query out: .*topic words, partition 0"
        ) as failed:
            t.run()
        assert "\n" not in str(failed.value)
