"""The guard against a map that breaks, where it cannot be had."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from moldau.pipelines import shared_source


class OtherSpark:
    """A session that is built otherwise."""

    def sessionState(self) -> Any:  # noqa: N802
        raise Py4JError("sessionState does not exist in the JVM\n  with a trace")


def test_it_is_said_once_where_there_is_no_guard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shared_source, "_told", threading.Event())
    session: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_jvm=None), _jsparkSession=OtherSpark()
    )
    for _ in range(2):
        shared_source.share_source(session)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "built otherwise than 4.3 (sessionState does not exist in the JVM): queries" in said


class Found:
    """The source as Spark finds it by itself, made with another Python than the session's."""

    def envVars(self) -> Any:  # noqa: N802
        return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: "HashMap"))

    def pythonExec(self) -> str:  # noqa: N802
        return "/of/the/jvm"

    def __getattr__(self, name: str) -> Any:
        return lambda: name


def test_the_source_runs_the_python_of_the_session() -> None:
    made: list[tuple[Any, ...]] = []
    found = SimpleNamespace(dataSourceCls=Found)
    manager = SimpleNamespace(lookupDataSource=lambda _name: found)
    spark = SimpleNamespace(
        sessionState=lambda: SimpleNamespace(dataSourceManager=lambda: manager),
        dataSource=lambda: SimpleNamespace(registerPython=lambda name, _source: made.append(name)),
    )
    concurrent = SimpleNamespace(ConcurrentHashMap=lambda _map: "safe")
    jvm = SimpleNamespace(
        SimplePythonFunction=lambda *parts: made.append(parts),
        java=SimpleNamespace(util=SimpleNamespace(concurrent=concurrent)),
        **{shared_source._PYTHON: lambda _function: None},
    )
    context = SimpleNamespace(_jvm=jvm, pythonExec="/of/the/session")
    session: Any = SimpleNamespace(sparkContext=context, _jsparkSession=spark)
    shared_source.share_source(session)
    includes, python = "pythonIncludes", "/of/the/session"
    assert made[0][:5] == ("command", "safe", includes, python, "pythonVer")
    assert made[1] == "moldau"


def test_a_server_of_spark_connect_has_its_own_session(capsys: pytest.CaptureFixture[str]) -> None:
    shared_source.share_source(SimpleNamespace())  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
