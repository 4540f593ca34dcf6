"""Apps from topic to topic: windows, changes, and what starts go on from."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from moldau import Admin, ConfigResource, ResourceType, TopicPartition
from moldau.client.errors import KafkaError
from moldau.pipelines import App
from moldau.pipelines.connector.cluster_offsets import CommitWarning
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.emitting import GrowingStateWarning
from moldau.pipelines.supervision.long_batch import LongBatch
from moldau.pipelines.supervision.progress import read_progress
from moldau.testing.broker import Broker
from tests.spark.apps import ORDERS, Apps, lag, order, send, values
from tests.spark.reading import read


def totals_app(apps: Apps, topic: str, emit: Any = None) -> App:
    app = apps.make()
    orders = app.stream(topic, ORDERS, event_time="at", watermark="10 seconds")
    totals = orders.groupBy("user", F.window("at", "1 minute")).agg(F.sum("amount").alias("total"))
    app.to(totals, f"{topic}-totals", key=["user", "window"], emit=emit)
    return app


def test_windows_are_written_once_when_they_are_over(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=2)
    send(broker, topic, [order(n, f"u{n % 3}", n, n) for n in range(120)])
    totals_app(apps, topic).run(once=True)
    # Rows that come later, and that close the second minute.
    send(broker, topic, [order(200, "u0", 300)])
    totals_app(apps, topic).run(once=True)
    found = values(broker, f"{topic}-totals")
    expected = {
        (f"u{u}", minute): float(sum(n for n in range(60 * minute, 60 * minute + 60) if n % 3 == u))
        for u in range(3)
        for minute in range(2)
    }
    assert len(found) == len(expected)
    assert {(each["user"], int(each["window"]["start"][15])): each["total"] for each in found} == (
        expected
    )
    assert len(read_partitions(broker, f"{topic}-totals")) == 2
    assert lag(broker, f"moldau-{apps.name}:{topic}-totals", topic) == 0


def countdown_app(apps: Apps, topic: str) -> App:
    """Return an app whose first query reads what the second writes, which reads what it writes."""
    app = apps.make()
    numbers = app.stream(topic, "n int")
    app.to(numbers.selectExpr("n", "10 * n AS tens"), f"{topic}-tens", name="tens")
    app.to(numbers.where("n > 0").selectExpr("n - 1 AS n"), topic, name="down")
    return app


def test_queries_that_feed_each_other_end_when_all_is_written_and_read(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    send(broker, topic, [{"n": 2}], key="n")
    countdown_app(apps, topic).run(once=True)
    assert [each["n"] for each in values(broker, topic)] == [2, 1, 0]
    assert sorted(each["tens"] for each in values(broker, f"{topic}-tens")) == [0, 10, 20]
    with pytest.raises(
        PipelineError, match=r"start\(once=True\): query tens reads what down writes"
    ):
        countdown_app(apps, topic).start(once=True)


def test_the_first_batch_tells_what_it_has_read_and_its_state_how_large_it_is(
    apps: Apps, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=2)
    send(broker, topic, [order(n, f"u{n}", n) for n in range(100)])
    app = apps.make()
    users = app.stream(topic, ORDERS)
    gate = tmp_path / "gate"

    def wait(user: str) -> str:
        deadline = time.monotonic() + 300
        while not gate.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return user

    # Spark would take the types of a function for those of Arrow.
    held = F.udf(lambda user: wait(user), "string")  # noqa: PLW0108
    rows = users.select(held("user").alias("user")).groupBy("user").count()
    app.declare(rows, f"{topic}-counts", key="user", emit="changes")
    (query,) = app.start(once=True)
    inside, deadline = LongBatch(query), time.monotonic() + 300
    while (found := inside.look(is_first=True)) is None or found.rows != 100:
        assert time.monotonic() < deadline, found
        assert query.isActive, query.exception()
        time.sleep(0.1)
    assert (found.phase, found.tasks_done) == ("Processing new data", 0)
    assert found.tasks
    gate.touch()
    assert query.awaitTermination(300)
    assert inside.look(is_first=False) is None
    assert query.lastProgress is not None
    numbers = read_progress(json.loads(query.lastProgress.json))
    files = Path(app.checkpoints.of(f"{topic}-counts")).rglob("*.sst")
    assert numbers.state_rows == 100
    assert numbers.state_bytes == sum(file.stat().st_size for file in files)
    app.stop()


def test_each_app_has_a_group_of_its_own_and_takes_over_the_one_that_it_had(
    apps: Apps, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=1)
    place = TopicPartition(topic, 0)

    def run(name: str) -> None:
        app = Apps(broker, name, tmp_path).make()
        app.to(app.stream(topic, ORDERS), f"{topic}-{name}", name="copy")
        app.run(once=True)

    def told(group: str) -> int | None:
        with Admin(broker.bootstrap_servers) as admin:
            at = admin.list_group_offsets(group).get(place)
        return None if at is None else at.offset

    send(broker, topic, [order(1, "ann", 1)])
    run(f"{apps.name}-a")
    send(broker, topic, [order(2, "ann", 2)])
    run(f"{apps.name}-b")
    ours = [f"moldau-{apps.name}-{name}:copy" for name in "ab"]
    assert [told(group) for group in ours] == [1, 2]
    # As it was before: both apps have told one group, and the second one last.
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("moldau-copy", {place: 2})
        admin.delete_groups(ours)
    send(broker, topic, [order(3, "ann", 3)])
    with pytest.warns(CommitWarning, match="moldau-copy stays as it is"):
        run(f"{apps.name}-a")
    assert [told(group) for group in (*ours, "moldau-copy")] == [3, None, 2]
    run(f"{apps.name}-b")
    assert [told(group) for group in (*ours, "moldau-copy")] == [3, 3, None]


def test_what_comes_too_late_is_counted_and_what_is_over_is_dropped(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    send(broker, topic, [order(1, "ann", 1), order(2, "ann", 300)])
    totals_app(apps, topic).run(once=True)
    # Of one user and window, Spark would count all rows of a task as one.
    send(broker, topic, [order(3, "ann", 2), order(4, "bob", 3)])
    app = totals_app(apps, topic)
    (query,) = app.start(once=True)
    assert query.awaitTermination(120)
    numbers = [read_progress(json.loads(each.json)) for each in query.recentProgress]
    app.stop()
    assert sum(each.late_rows for each in numbers) == 2
    assert numbers[-1].state_rows == 1
    assert len(values(broker, f"{topic}-totals")) == 1


def test_a_query_that_was_killed_while_it_wrote_its_first_offsets_begins_anew(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    send(broker, topic, [order(1, "ann", 1), order(2, "ann", 300)])
    app = totals_app(apps, topic)
    offsets = Path(app.checkpoints.of(f"{topic}-totals")) / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.278022de-8f83-4cd6-a60c-39b8708b44cd.tmp").touch()
    app.run(once=True)
    assert [each["total"] for each in values(broker, f"{topic}-totals")] == [1.0]


def read_partitions(broker: Broker, topic: str) -> list[int]:
    with Admin(broker.bootstrap_servers) as admin:
        return [each.index for each in admin.list_topics()[topic].partitions]


def test_changes_are_upserts_in_a_compacted_topic(apps: Apps, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=1)
    for first in (0, 10):
        send(broker, topic, [order(n, f"u{n % 3}", n, n) for n in range(first, first + 10)])
        app = apps.make()
        with pytest.warns(GrowingStateWarning, match="keeps every key for ever"):
            app.to(
                app.stream(topic, ORDERS).groupBy("user").agg(F.sum("amount").alias("total")),
                f"{topic}-sums",
                key="user",
            )
        app.run(once=True)
    latest = {}
    for record in read(broker.bootstrap_servers, f"{topic}-sums"):
        latest[record.key] = json.loads(record.value or b"")["total"]
    assert latest == {f"u{u}".encode(): sum(n for n in range(20) if n % 3 == u) for u in range(3)}
    resource = ConfigResource(ResourceType.TOPIC, f"{topic}-sums")
    with Admin(broker.bootstrap_servers) as admin:
        configs = admin.describe_configs([resource])[resource]
    assert not isinstance(configs, KafkaError)
    assert configs["cleanup.policy"].value == "compact"
