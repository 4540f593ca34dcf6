"""What a machine lacks is named, with the package to install."""

import shutil
import sys
import sysconfig

import pytest

from moldau.pipelines import java
from tools import bootstrap


def test_a_machine_that_has_everything_is_not_bothered() -> None:
    assert bootstrap.missing() == []


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 12))
    (line,) = bootstrap.missing()
    assert "3.11 or newer" in line


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (line,) = bootstrap.missing()
    assert "build-essential" in line


def test_missing_headers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: "nowhere")
    (line,) = bootstrap.missing()
    assert "python3-dev" in line


def test_a_missing_venv_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    (line,) = bootstrap.missing()
    assert "python3-venv" in line


def test_a_java_is_installed_only_where_spark_finds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found: str | None = "/usr/bin/java"
    monkeypatch.setattr(java, "find_own_java", lambda: found)
    assert bootstrap.has_java()
    found = None
    assert not bootstrap.has_java()
