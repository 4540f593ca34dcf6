"""The memory of Spark's Python workers, which look for garbage after every task."""

import gc
import os
from typing import Final

REUSED: Final = "SPARK_REUSE_WORKER"
"""Spark sets it for workers that do more than one task."""

TIMES: Final = 8
"""How often: what is used first in a later task is loaded there."""

_times_left = TIMES


def settle() -> None:
    """Have what a worker has loaded by now looked through no more.

    A worker that is used again collects garbage between two tasks, and looks through all objects
    that there are: the modules' hundred thousand took it 25 ms, several times what a small task
    takes, and the next task waits for it. What is frozen is still freed when nothing refers to it,
    unless it refers to itself; what comes later is looked through as before.
    """
    global _times_left  # noqa: PLW0603 - of the process
    if _times_left and REUSED in os.environ:
        _times_left -= 1
        gc.collect()
        gc.freeze()
