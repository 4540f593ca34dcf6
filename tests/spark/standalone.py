"""A standalone Spark cluster: a master and workers, each a process of its own."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark.find_spark_home import _find_spark_home

from moldau.pipelines.java import use_java
from tools.peers import spark_options

T = TypeVar("T")

HOST = "127.0.0.1"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
WORKERS = 2
START_SECONDS_MAX = 120


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Run a cluster on loopback, with logs and work in `folder`; yield the URL of its master."""
    with ExitStack() as stack:
        url = stack.enter_context(run_master(folder / "master"))
        for number in range(WORKERS):
            stack.enter_context(run_worker(folder / f"worker-{number}", url))
        yield url


@contextmanager
def run_master(folder: Path, host: str = HOST, program: Sequence[str] = ()) -> Iterator[str]:
    """Run a master and yield its URL; `program` goes before its command."""
    options = ("--webui-port", "0")
    with _daemon(folder, host, program, MASTER, *options) as log:
        # The master chose the port, and says so.
        yield _wait(lambda: _find_word(log, f"spark://{host}:"), log)


@contextmanager
def run_worker(
    folder: Path, url: str, host: str = HOST, program: Sequence[str] = ()
) -> Iterator[None]:
    """Run a worker of a master's, with one core."""
    options = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder))
    with _daemon(folder, host, program, WORKER, *options, url) as log:
        _wait(lambda: "Successfully registered with master" in log.read_text() or None, log)
        yield


@contextmanager
def _daemon(
    folder: Path, host: str, program: Sequence[str], main: str, *options: str
) -> Iterator[Path]:
    use_java()
    folder.mkdir(parents=True)
    log = folder / "log"
    command = [*program, str(Path(_find_spark_home(), "bin/spark-class")), main]
    # `spark-class` becomes the Java process, so that its id is the one to stop.
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--host", host, "--port", "0", *options],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ
            | {
                "SPARK_LOCAL_IP": host,
                "SPARK_DAEMON_MEMORY": "512m",
                "SPARK_DAEMON_JAVA_OPTS": spark_options(),
            },
        )
    try:
        _wait(lambda: _has_started(process, log), log)
        yield log
    finally:
        process.terminate()
        process.wait()


def _has_started(process: subprocess.Popen[bytes], log: Path) -> bool | None:
    assert process.poll() is None, log.read_text()
    return "Successfully started service" in log.read_text() or None


def _find_word(log: Path, beginning: str) -> str | None:
    return next((word for word in log.read_text().split() if word.startswith(beginning)), None)


def _wait(look: Callable[[], T | None], log: Path) -> T:
    deadline = time.monotonic() + START_SECONDS_MAX
    while (found := look()) is None:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found
