"""The driver is killed with -9 at points of a batch; the next run leaves every row there once.

MOLDAU_SINK_POINTS=all kills at every point.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from moldau.testing.broker import Broker
from tests.spark.crashing_sink import POINTS, TASK_FAILURE
from tests.spark.reading import open_transactions, read_values

SAMPLE = ("task_after_flush", "commit_after_decision", "commit_half_ended")
SECONDS_MAX = 240


def run_driver(*arguments: str) -> int:
    """Run a driver in a group of its own, to its end or its death."""
    root = Path(__file__).parents[2]
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.crashing_sink", *arguments],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        return driver.wait(SECONDS_MAX)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)


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
    assert open_transactions(broker.bootstrap_servers) == []


@pytest.mark.parametrize("point", POINTS if os.environ.get("MOLDAU_SINK_POINTS") else SAMPLE)
def test_a_driver_that_is_killed_leaves_nothing_twice_and_nothing_out(
    broker: Broker, topic: str, tmp_path: Path, point: str
) -> None:
    arguments = prepare(broker, topic, tmp_path)
    assert run_driver(*arguments, f"{point}:1") == -signal.SIGKILL
    assert run_driver(*arguments) == 0
    check(broker, topic)


def test_a_task_that_fails_is_tried_again(broker: Broker, topic: str, tmp_path: Path) -> None:
    arguments = prepare(broker, topic, tmp_path)
    assert run_driver(*arguments, TASK_FAILURE) == 0
    check(broker, topic)
