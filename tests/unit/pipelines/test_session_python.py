"""Which Python Spark's workers run."""

import os
import sys
from collections.abc import Iterator

import pytest

from moldau.pipelines import session
from moldau.pipelines.worker_server import SOCKET, WorkerServer


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have an environment in which nothing is chosen, and put it back."""
    before = dict(os.environ)
    for name in ("PYSPARK_PYTHON", "MOLDAU_PYTHON", "PYSPARK_GATEWAY_PORT", "SPARK_HOME", SOCKET):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(session, "_worker_server", None)
    yield
    os.environ.clear()
    os.environ.update(before)


def choose(master: str | None, wanted: str | None = None) -> str:
    session._choose_python(master, wanted)
    return os.environ["PYSPARK_PYTHON"]


def test_another_machine_runs_the_python_of_this_path_and_hears_of_no_server() -> None:
    assert choose("spark://castle:7077") == sys.executable
    assert {SOCKET, "MOLDAU_PYTHON"}.isdisjoint(os.environ)


def test_a_python_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose("yarn", "./environment/bin/python") == "./environment/bin/python"
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert choose("yarn") == "/opt/python"
    assert choose("local[2]") == "/opt/python"


def test_a_local_session_has_a_server_and_a_later_one_elsewhere_does_not_use_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[WorkerServer] = []

    class Server(WorkerServer):
        def __init__(self) -> None:
            started.append(self)
            self.path = "here"

        @property
        def is_running(self) -> bool:
            return True

        def stop(self) -> None:
            """Nothing was started."""

    monkeypatch.setattr(session, "WorkerServer", Server)
    assert choose("local[2]").endswith("worker/python")
    assert (os.environ[SOCKET], os.environ["MOLDAU_PYTHON"]) == ("here", sys.executable)
    assert choose("spark://castle:7077") == sys.executable
    assert len(started) == 1
