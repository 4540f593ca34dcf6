"""The first signal asks, the second ends."""

import signal
import subprocess
import sys
import threading

import pytest

from moldau.pipelines.supervision.signals import stop_on_signals

IMPATIENT = """
import signal, sys
from moldau.pipelines.supervision.signals import stop_on_signals
with stop_on_signals(lambda: print("stopping", flush=True)):
    for _ in range(2):
        signal.raise_signal(signal.Signals[sys.argv[1]])
print("still here")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_asks_and_handlers_come_back(number: signal.Signals) -> None:
    before, asked = signal.getsignal(number), threading.Event()
    with stop_on_signals(asked.set):
        signal.raise_signal(number)
        assert asked.is_set()
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_ends_at_once(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, number.name], capture_output=True, check=False
    )
    assert done.stdout == b"stopping\n"
    assert done.returncode == -number


def test_another_thread_leaves_signals_alone() -> None:
    found: list[object] = []

    def look() -> None:
        with stop_on_signals(lambda: None):
            found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [before]
