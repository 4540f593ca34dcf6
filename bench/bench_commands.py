"""How long a person waits for a command: the whole process, from the shell and back."""

import subprocess
import sys
import time
from statistics import median
from tempfile import TemporaryDirectory

from bench.row import Row
from tests.nodes import RunningNode

ROUNDS = 15
COMMANDS = {
    ("moldau", "--version"): 150,
    ("moldau", "topics", "list"): 300,
}
"""With the milliseconds that they may take."""


def rows() -> list[Row]:
    """Measure each command against its budget."""
    with TemporaryDirectory() as directory:
        node = RunningNode("--data", directory)
        try:
            there = ("--bootstrap-server", node.bootstrap_servers)
            return [_row(words, there, budget_ms) for words, budget_ms in COMMANDS.items()]
        finally:
            node.kill()


def _row(words: tuple[str, ...], there: tuple[str, ...], budget_ms: float) -> Row:
    command = [sys.executable, "-m", "moldau.cli", *words[1:]]
    if words[1] != "--version":
        command += there
    taken = median(_milliseconds(command) for _ in range(ROUNDS))
    name = f"`{' '.join(words)}`"
    return Row(name, "its budget", taken, budget_ms, "ms", budget_ms / taken, 1.0)


def _milliseconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000
