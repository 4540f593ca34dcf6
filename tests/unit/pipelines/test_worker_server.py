"""A process that the server forks is what Spark takes it for: one that it has started itself."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines import session
from moldau.pipelines.worker_server import PRELOADED, SOCKET, WorkerServer

PYTHON = str(Path(session.__file__).parent / "worker/python")
SECONDS_MAX = 60

TELLING = """
import json, os, random, sys
sys.stderr.write("errors, too")
print(json.dumps({
    "stdin": sys.stdin.read(), "argv": sys.argv[1:], "path": sys.path[:2], "cwd": os.getcwd(),
    "variable": os.environ.get("SPARK_THING"), "process": os.getpid(), "parent": os.getppid(),
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:3], "chance": random.random(),
    "preloaded": [each for each in %r if each in sys.modules],
    "numpy.random": "numpy.random" in sys.modules,
}))
sys.exit(7)
"""
WAITING = """
import os, time
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[WorkerServer]:
    made = WorkerServer()
    try:
        yield made
    finally:
        made.stop()


def start(folder: Path, program: str, where: str, *arguments: str) -> "subprocess.Popen[str]":
    (folder / "program.py").write_text(program)
    return subprocess.Popen(
        [PYTHON, "-m", "program", *arguments],
        cwd=folder,
        env=os.environ
        | {
            "MOLDAU_PYTHON": sys.executable,
            SOCKET: where,
            "SPARK_THING": "á",
            "PYTHONPATH": f"/spark/python/lib/pyspark.zip{os.pathsep}{folder}/extra",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline, f"process {process} goes on"
        time.sleep(0.01)


def test_streams_surroundings_and_the_exit_code_are_its_own(
    server: WorkerServer, tmp_path: Path
) -> None:
    found = []
    for _ in range(2):
        with start(tmp_path, TELLING % (PRELOADED,), server.path, "a", "b") as process:
            out, errors = process.communicate("typed", timeout=SECONDS_MAX)
        assert (process.returncode, errors) == (7, "errors, too")
        found.append(json.loads(out))
    told = found[0]
    assert (told["stdin"], told["argv"], told["variable"]) == ("typed", ["a", "b"], "á")
    assert (told["cwd"], told["path"]) == (str(tmp_path), [str(tmp_path), f"{tmp_path}/extra"])
    assert told["preloaded"] == list(PRELOADED)
    assert found[0]["chance"] != found[1]["chance"]
    # A generator that was seeded before the fork would have the same numbers in all workers.
    assert not told["numpy.random"]


def test_a_stop_reaches_it(server: WorkerServer, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with start(tmp_path, WAITING, server.path) as process:
            assert process.stdout is not None
            forked = int(process.stdout.readline())
            assert forked != process.pid
            process.send_signal(number)
            assert process.wait(SECONDS_MAX) == -number
        wait_for_end(forked)


def test_what_it_has_forked_outlives_it(tmp_path: Path) -> None:
    server = WorkerServer()
    with start(tmp_path, WAITING, server.path) as process:
        assert process.stdout is not None
        forked = int(process.stdout.readline())
        server.stop()
        assert not server.is_running
        assert not Path(server.path).exists()
        os.kill(forked, signal.SIGKILL)
        # It has heard nothing of the end, and tells Spark of one.
        assert process.wait(SECONDS_MAX) == 1
    wait_for_end(forked)


def test_without_a_server_python_is_started(tmp_path: Path) -> None:
    with start(tmp_path, TELLING % (PRELOADED,), str(tmp_path / "nowhere")) as process:
        out, _ = process.communicate("typed", timeout=SECONDS_MAX)
    assert process.returncode == 7
    assert json.loads(out)["process"] == process.pid
