"""Threads that open a session at the same moment, as the queries of a SQL server do."""

import threading
import time
from types import SimpleNamespace

import pytest

from moldau.pipelines import session

THREADS = 3


class Builder:
    """Gives the session that is there, or fails as PySpark does on a context half made."""

    def __getattr__(self, _name: str):
        return lambda *_: self

    def getOrCreate(self):  # noqa: N802 - Spark's name
        return session.SparkContext._active_spark_context.session


def test_one_jvm_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = SimpleNamespace(createDataFrame=lambda *_: None)
    contexts = SimpleNamespace(_active_spark_context=None)
    meeting = threading.Barrier(THREADS)
    started = []

    def start(_conf: object) -> None:
        started.append(threading.current_thread())
        contexts._active_spark_context = SimpleNamespace()  # others see it, half made
        time.sleep(0.1)  # those that do not wait for this one find it so
        contexts._active_spark_context.session = opened

    fakes = {
        "SparkSession": SimpleNamespace(getActiveSession=lambda: None, builder=Builder()),
        "SparkContext": contexts,
        "start_quietly": start,
        **dict.fromkeys(("share_source", "_end_quietly", "_choose_python"), lambda *_: None),
        **dict.fromkeys(("check_pyspark", "use_java", "_drop_dead_session"), lambda: None),
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(session, name, fake)
    found = []

    def open_one() -> None:
        meeting.wait(10)
        found.append(session.get_session("shop"))

    threads = [threading.Thread(target=open_one) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [opened] * THREADS
    assert len(started) == 1
