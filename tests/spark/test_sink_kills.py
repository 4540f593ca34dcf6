"""The driver is killed with -9 at points of a batch; the next run leaves every row there once.

MOLDAU_SINK_POINTS=all kills at every point.
"""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from moldau.testing.broker import Broker
from tests.spark.counting import connections_accepted
from tests.spark.crashing_sink import NO_REUSE, POINTS, TASK_FAILURE, TIMEOUT_MS
from tests.spark.drivers import run_driver
from tests.spark.reading import open_transactions, read_values

HALF_ENDED = "commit_half_ended"
SAMPLE = ("task_after_flush",)
SAMPLE_OF_TIMEOUTS = (HALF_ENDED,)
ALL = "MOLDAU_SINK_POINTS" in os.environ


def run(*arguments: str) -> int:
    """Run a driver to its end or its death."""
    return run_driver("tests.spark.crashing_sink", *arguments)[0]


def prepare(broker: Broker, topic: str, directory: Path) -> tuple[str, str, str]:
    """Make a topic and a source of three batches; return a driver's arguments."""
    broker.create_topic(topic, partitions=3)
    (directory / "source").mkdir()
    for number in range(3):
        lines = (f"{number}-{row}" for row in range(200))
        (directory / "source" / f"{number}.txt").write_text("\n".join(lines))
    return broker.bootstrap_servers, topic, str(directory)


def check(broker: Broker, topic: str) -> None:
    """All rows are there, once, and nothing holds readers up."""
    expected = Counter(f"{number}-{row}".encode() for number in range(3) for row in range(200))
    assert read_values(broker.bootstrap_servers, topic) == expected
    assert open_transactions(broker.bootstrap_servers, topic) == []


@pytest.mark.parametrize("point", POINTS if ALL else SAMPLE)
def test_a_driver_that_is_killed_leaves_nothing_twice_and_nothing_out(
    broker: Broker, topic: str, tmp_path: Path, point: str
) -> None:
    arguments = prepare(broker, topic, tmp_path)
    assert run(*arguments, f"{point}:1") == -signal.SIGKILL
    assert run(*arguments) == 0
    check(broker, topic)


def test_a_task_that_fails_is_tried_again_by_a_worker_that_has_kept_nothing(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    arguments = prepare(broker, topic, tmp_path)
    accepted = connections_accepted(broker)
    assert run(*arguments, TASK_FAILURE, NO_REUSE) == 0
    # Each of three batches has two tasks, of which one comes twice, and an end.
    assert connections_accepted(broker) - accepted >= 3 * (3 + 1)
    check(broker, topic)


@pytest.mark.soak
@pytest.mark.parametrize("point", POINTS if ALL else SAMPLE_OF_TIMEOUTS)
def test_a_driver_that_is_down_for_longer_than_the_timeout_loses_nothing_silently(
    topic: str, tmp_path: Path, point: str
) -> None:
    with Broker() as broker:
        arguments = prepare(broker, topic, tmp_path)
        assert run(*arguments, f"{point}:1") == -signal.SIGKILL
        broker.clock.advance(f"{2 * TIMEOUT_MS} ms")
        assert open_transactions(broker.bootstrap_servers, topic) == []
        code, said = run_driver("tests.spark.crashing_sink", *arguments)
        if point == HALF_ENDED:
            # A part of the batch is visible, and the rest is gone: that is said, every time.
            assert code != 0
            assert "batch 1: it was decided, but the broker has aborted" in said
            assert f"timeout of {TIMEOUT_MS} ms" in said
        else:
            assert code == 0, said
            check(broker, topic)
