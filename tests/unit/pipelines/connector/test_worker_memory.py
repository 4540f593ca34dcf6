"""What a worker has loaded is not looked through after every task."""

import gc
import subprocess
import sys

import pytest

from moldau.pipelines.connector import worker_memory
from moldau.pipelines.connector.worker_memory import REUSED, TIMES, settle

AS_A_WORKER = """
import gc
from moldau.pipelines.connector.worker_memory import TIMES, settle
before = len(gc.get_objects())
settle()
assert gc.get_freeze_count() > 0.9 * before, gc.get_freeze_count()
assert len(gc.get_objects()) < 0.1 * before
for _ in range(TIMES):
    settle()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
settle()
assert gc.get_freeze_count() == frozen
kept[0].append(kept)
del kept
assert gc.collect() > 1000
"""


def test_a_worker_that_is_used_again_freezes_what_it_has_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_A_WORKER],
        env={REUSED: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_other_processes_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REUSED, raising=False)
    frozen = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() == frozen
    assert worker_memory._times_left == TIMES
