"""What a machine lacks is named, with its package; what takes long says how far it is."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections import namedtuple
from pathlib import Path

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


@pytest.mark.parametrize("program", bootstrap.PACKAGES)
def test_a_missing_program_is_named_with_its_package(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == program else name)
    (line,) = bootstrap.missing_programs()
    assert line.startswith(f"no {program}: ")
    assert f"apt-get install {bootstrap.PACKAGES[program]}" in line


def test_a_full_disk_is_named_before_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=1_000_000_000))
    assert bootstrap.lacking_space("run") == []
    (line,) = bootstrap.lacking_space("test")
    assert line.startswith("1.0 GB free")
    (tmp_path / ".dev.stamp").write_text("installed")
    assert bootstrap.lacking_space("test") == []


Usage = namedtuple("Usage", "free")


@pytest.mark.parametrize("target", ["run", "demo", "dev", "test"])
def test_what_is_missing_is_said_before_anything_is_begun(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", target])
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(bootstrap, "_run", lambda *command, **_: pytest.fail(str(command)))
    assert bootstrap.main() == 1
    lines = capsys.readouterr().err.splitlines()
    assert "build-essential" in lines[0]
    assert ("no mvn: " in "".join(lines)) == (target == "test")


COMPILER = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2"; shift; done
"""


@pytest.mark.long
def test_each_kernel_is_named_when_it_is_compiled(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    folders = ("--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp"))
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", *folders, "-j2"],
        cwd=bootstrap.ROOT,
        env=os.environ | {"CC": str(compiler), "LDSHARED": str(compiler)},
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(path.stem for path in bootstrap.NATIVE.glob("*.pyx"))
    said = [line for line in done.stdout.splitlines() if line.startswith("moldau: compiling ")]
    numbers = [line.split(":")[1] for line in said]
    count = len(names)
    assert sorted(numbers) == sorted(f" compiling kernel {n + 1} of {count}" for n in range(count))
    assert sorted(line.rpartition(" ")[2] for line in said) == names
