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


def test_a_server_of_spark_connect_has_its_own_session(capsys: pytest.CaptureFixture[str]) -> None:
    shared_source.share_source(SimpleNamespace())  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
