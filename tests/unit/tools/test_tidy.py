"""The house rules are noticed when they are broken."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tools.tidy import (
    CORE_CONTRACT,
    clock_violations,
    core_imports,
    core_packages,
    cycle_violations,
    find_cycles,
    find_shared,
    gerund_violations,
    machine_violations,
    name_violations,
    violations,
)

FINE = '"""A fine module."""\n'
CORE = {"log"}


def write(folder: Path, files: Mapping[str, str]) -> Iterator[Path]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        yield path


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("log/utils.py", FINE, "name it after what it holds"),
        ("log/segment.py", "x = 1\n", "one-sentence docstring"),
        ("log/segment.py", FINE + "x = 1\n" * 500, "split it"),
        ("log/segment.py", FINE + "async def f(): ...\n", "only shells wait"),
        ("log/segment.py", FINE + "x = open('f')\n", "the Disk port"),
        ("log/segment.py", FINE + "for x in set(y): pass\n", "sort a set"),
        ("log/segment.py", FINE + "def f():\n" + "    x = 1\n" * 60, "f is 61 lines"),
        ("log/segment.py", FINE + "x = '/home" + "/somebody'\n", "path of one machine"),
    ],
)
def test_a_broken_rule_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (path,) = write(tmp_path, {name: text})
    assert any(complaint in line for line in violations(path, package=tmp_path, core=CORE))


@pytest.mark.parametrize(
    ("patch", "is_shared"),
    [
        ('setattr("moldau.cli.moments.time' + '.time_ns", f)', True),
        ("setattr(asking.time" + ', "monotonic", f)', True),
        ("setattr(time" + ', "sleep", f)', True),
        ('setattr(asking, "time", clock)', False),
        ('setattr("moldau.cli.moments.time", clock)', False),
        ('setattr(reader, "time_of", f)', False),
    ],
)
def test_no_test_moves_the_clock_of_all(tmp_path: Path, patch: str, is_shared: bool) -> None:
    (path,) = write(tmp_path, {"test_clock.py": f"monkeypatch.{patch}\n"})
    assert bool(list(clock_violations([path]))) == is_shared


def test_the_shell_may_do_what_the_core_may_not(tmp_path: Path) -> None:
    (path,) = write(tmp_path, {"runtime/disk.py": FINE + "async def f(): open('f')\n"})
    assert list(violations(path, package=tmp_path, core=CORE)) == []


# The machine.


def machine(folder: Path, files: Mapping[str, str], **allowed: str) -> list[str]:
    paths = list(write(folder, files))
    named = {name.replace("__", "/") + ".py": reason for name, reason in allowed.items()}
    return list(machine_violations(paths, package=folder, core=CORE, allowed=named))


@pytest.mark.parametrize("name", ["log/a.py", "runtime/a.py", "client/a.py"])
@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("import time\n", "time"),
        ("import socket as s\n", "socket"),
        ("from concurrent.futures import Future\n", "concurrent.futures"),
        ("def f():\n    from threading import Lock\n", "threading"),
        ("import os\nos.urandom(1)\n", "urandom"),
        ("from os import urandom\n", "urandom"),
        ("async def f(): await asyncio.to_thread(print)\n", "to_thread"),
        ("loop.add_reader(1, print)\n", "add_reader"),
    ],
)
def test_the_machine_is_used_through_the_environment(
    tmp_path: Path, name: str, text: str, use: str
) -> None:
    (line,) = machine(tmp_path, {name: text})
    assert f": {use}: take it from the environment" in line


def test_others_may_use_the_machine(tmp_path: Path) -> None:
    files = {
        "cli/a.py": "import time\n",
        "runtime/b.py": "from moldau.time import now\nimport os\n",
    }
    assert machine(tmp_path, files) == []


def test_a_file_of_the_machine_is_named_as_long_as_it_uses_it(tmp_path: Path) -> None:
    files = {"runtime/a.py": "import time\n", "runtime/b.py": "import os\n"}
    assert machine(tmp_path, files, runtime__a="sockets") == []
    (line,) = machine(tmp_path, files, runtime__a="sockets", runtime__b="threads")
    assert "runtime/b.py does not use the machine itself any more" in line


# The core.


def project(layers: str, core: str) -> str:
    return f"""
[[tool.importlinter.contracts]]
name = "Layers point down"
layers = {layers}
[[tool.importlinter.contracts]]
name = "{CORE_CONTRACT}"
source_modules = {core}
"""


def test_the_core_is_what_stands_below_the_shells() -> None:
    text = project(
        '["cli", "runtime | client", "broker", "groups | log"]',
        '["moldau.log", "moldau.broker", "moldau.groups"]',
    )
    assert core_packages(text) == {"broker", "groups", "log"}


def test_a_package_that_only_one_contract_has_is_named() -> None:
    text = project('["runtime", "broker", "sharing | log"]', '["moldau.log", "moldau.broker"]')
    with pytest.raises(AssertionError, match="sharing"):
        core_packages(text)


def test_coordination_and_sharing_are_of_the_core() -> None:
    assert {"coordination", "sharing", "kernel"} <= core_packages(
        Path("pyproject.toml").read_text()
    )


# Names.


def shared(folder: Path, files: Mapping[str, str]) -> set[str]:
    return set(find_shared(write(folder, files)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("class Plan: ...", "class Plan: ..."),
        ("class Plan: ...", "class Query:\n    class Plan: ...\n"),
        ("class Plan: ...", "Plan = int | str\n"),
        ("class Plan: ...", "Plan: TypeAlias = int\n"),
    ],
)
def test_a_name_that_two_files_declare(tmp_path: Path, first: str, second: str) -> None:
    assert shared(tmp_path, {"log/a.py": first, "cli/b.py": second}) == {"Plan"}


def test_a_name_that_a_kernel_declares_as_well(tmp_path: Path) -> None:
    files = {"a.py": "class Plan: ...", "b.pyx": "cdef class Plan:\n    pass\nclass Other: ..."}
    assert shared(tmp_path, files) == {"Plan"}


@pytest.mark.parametrize(
    "text",
    [
        "class _Plan: ...",
        "PLAN = 1\n",
        "T = 1\n",
        "Plan = TypeVar('Plan')\n",
        "def f():\n    Plan = int\n",
    ],
)
def test_what_may_be_repeated(tmp_path: Path, text: str) -> None:
    assert shared(tmp_path, {"a.py": text, "b.py": text}) == set()


def test_the_wire_has_kafkas_names(tmp_path: Path) -> None:
    text = "class Topic: ..."
    files = {"protocol/messages/a.py": text, "protocol/stored/b.py": text, "log/c.py": text}
    assert shared(tmp_path, files) == set()


def test_a_shared_name_needs_a_reason_and_a_reason_a_shared_name() -> None:
    found = {"Plan": [Path("a.py"), Path("b.py")], "Topic": [Path("c.py"), Path("d.py")]}
    assert list(name_violations(found, {"Topic": "why", "Draft": "why"})) == [
        "Plan is declared 2 times: a.py, b.py; a name means one thing",
        "Draft is not shared any more: take it off SHARED_NAMES",
    ]


def test_files_are_nouns_where_that_is_the_rule() -> None:
    package = Path("src/moldau")
    names = ["log/reading.py", "log/extents.py", "groups/listing.py", "cli/printing.py"]
    paths = [package / name for name in names]
    allowed = {"groups/listing.py": "why", "broker/parking.py": "why"}
    assert list(gerund_violations(paths, package=package, allowed=allowed)) == [
        "src/moldau/log/reading.py: name it after what it holds, by a noun",
        "broker/parking.py is not there any more: take it off GERUNDS",
    ]


# Circles.


def test_modules_that_import_each_other_are_found() -> None:
    imports = {"a": "b", "b": "c", "c": "ad", "d": "e", "e": "", "f": "fe"}
    assert list(find_cycles(imports)) == [["a", "b", "c"], ["f"]]


def test_a_circle_needs_a_reason_and_a_reason_a_circle() -> None:
    imports = {
        "moldau.log.a": ["moldau.log.b"],
        "moldau.log.b": ["moldau.log.a"],
        "moldau.groups.a": ["moldau.groups.b"],
        "moldau.groups.b": ["moldau.groups.a"],
    }
    allowed = {"moldau.groups": "why", "moldau.broker": "why"}
    assert list(cycle_violations(imports, allowed)) == [
        "2 modules import each other: moldau.log.a, moldau.log.b",
        "moldau.broker has no circle of imports any more: take it off CYCLES",
    ]


def test_imports_for_type_checkers_count() -> None:
    imports = core_imports({"broker"})
    assert "moldau.broker.coordinators.siblings" in imports["moldau.broker.coordinators.groups"]
    assert all(module.startswith("moldau.broker") for module in imports)
