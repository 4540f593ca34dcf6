"""What is wrong with an app is one line that says how to go on."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from moldau.client.errors import ClientError
from moldau.pipelines import App, OptionError, PipelineError
from moldau.pipelines.streams.emitting import GrowingStateWarning
from moldau.testing.broker import Broker
from tests.spark.apps import ORDERS, Apps, order, send


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "format=json needs a schema"),
        ({"schema": "id strin"}, "schema 'id strin' is not Spark's"),
        ({"schema": ORDERS, "format": "xml"}, "format=xml: json, raw, string"),
        ({"schema": ORDERS, "format": "string"}, "format=string has no schema; leave it out"),
        ({"schema": ORDERS, "key": "k"}, "key='k' is not a schema"),
        ({"schema": ORDERS, "key": "user string"}, "there are two columns user"),
        ({"schema": ORDERS, "watermark": "1 second"}, "event_time and watermark belong together"),
        (
            {"schema": ORDERS, "event_time": "when", "watermark": "1 second"},
            "event_time=when: the rows have id, user, amount, at",
        ),
        (
            {"schema": ORDERS, "event_time": "id", "watermark": "1 second"},
            "event_time=id is string: declare it as timestamp, or as a bigint of the value with",
        ),
        (
            {"schema": ORDERS, "event_time": "at", "event_time_unit": "ms"},
            "event_time_unit=ms: event_time=at is timestamp, and only a bigint of the value has",
        ),
        (
            {"schema": "at bigint", "event_time": "at", "event_time_unit": "minutes"},
            "event_time_unit=minutes: s, ms, us, ns are allowed",
        ),
        ({"schema": ORDERS, "event_time_unit": "ms"}, "event_time_unit=ms: it is about the column"),
        (
            {"schema": ORDERS, "event_time": "at", "watermark": "soon"},
            "watermark=soon: ",
        ),
        ({"schema": ORDERS, "on_error": "ignore"}, "on_error=ignore: fail, skip, dead-letter"),
        ({"schema": ORDERS, "starting": "now"}, "startingOffsets=now: earliest, latest"),
        ({"schema": ORDERS, "options": {"maxOffsets": 3}}, "there is no option maxoffsets"),
    ],
)
def test_streams(apps: Apps, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        apps.make().stream("orders", **options)
    assert "\n" not in str(caught.value)


def test_queries(apps: Apps) -> None:
    app = apps.make()
    with pytest.raises(PipelineError, match="has no queries: declare some"):
        app.start()
    orders = app.stream("orders", ORDERS)
    with pytest.raises(PipelineError, match="these rows are a batch"):
        app.to(app.spark.range(3), "out")
    with pytest.raises(PipelineError, match="key nobody: the rows have id, user, amount, at"):
        app.to(orders, "out", key="nobody")
    with pytest.raises(PipelineError, match="emit=final: without a watermark nothing is"):
        app.to(orders.groupBy("user").count(), "out", emit="final")
    with pytest.raises(PipelineError, match=r"emit=changes: rows replace .* give key"):
        app.to(orders.groupBy("user").count(), "out")
    with pytest.raises(OptionError, match="name=a/b: letters"):
        app.to(orders, "out", name="a/b")
    app.to(orders, "out")
    with pytest.raises(PipelineError, match="query out is there already: give this one another"):
        app.to(orders, "out")


def test_a_broker_that_is_not_there(apps: Apps) -> None:
    app = App(
        "nowhere",
        "localhost:1",
        checkpoints=str(apps.folder),
        configs={"kafka.default.api.timeout.ms": 1000},
    )
    app.to(app.stream("orders", ORDERS), "out")
    with pytest.raises(ClientError, match="localhost:1"):
        app.start()


def test_a_topic_that_is_not_there(apps: Apps, capsys: pytest.CaptureFixture[str]) -> None:
    app = apps.make()
    app.to(app.stream("missing", ORDERS), "out-of-missing")
    with pytest.raises(SystemExit, match="1"):
        app.run(once=True)
    assert "out-of-missing: there is no topic missing: create it" in capsys.readouterr().err
    words = "^preview: there is no topic missing: create it, or check option subscribe$"
    with pytest.raises(PipelineError, match=words):
        app.preview(app.stream("missing", ORDERS))
    with pytest.raises(PipelineError, match=words):
        app.preview(app.table("missing", "k string", "v string"))


def test_a_change_of_code_that_the_checkpoint_cannot_take(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    send(broker, topic, [order(1, "ann", 1)])

    def app_of(aggregate: Any) -> App:
        app = apps.make()
        with pytest.warns(GrowingStateWarning):
            app.to(
                app.stream(topic, ORDERS).groupBy("user").agg(aggregate), f"{topic}-out", key="user"
            )
        return app

    app_of(F.sum("amount").alias("total")).run(once=True)
    # Another name for the same is no change of state.
    app_of(F.sum("amount").alias("sum")).run(once=True)
    with pytest.raises(PipelineError, match=f"kept state of .* reset .* --query {topic}-out"):
        app_of(F.avg("amount")).start()


def test_a_cluster_needs_checkpoints_that_it_sees(
    apps: Apps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = apps.make()
    app.to(app.stream("orders", ORDERS), "out")
    monkeypatch.setattr(type(app.spark.conf), "get", lambda *_: "spark://host:7077")
    with pytest.raises(PipelineError, match="master spark://host:7077 runs on other machines"):
        app.start()
