"""Bugs that are planted in the node, each of which a simulated run has to find.

tests/planted has a patch for each, and a script of the faults that show it. A run is a
process of its own, with a copy of the package that has the bug. A script that shows nothing any
more, as the workload has changed, is no failure as long as one of 200 seeds does; then
MOLDAU_UPDATE_GOLDEN searches, and replaces it by the shortest one that is found.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

PACKAGE: Final = Path(__file__).parents[2] / "src" / "moldau"
PROGRAM: Final = Path(__file__).with_name("planted_run.py")
PAGE: Final = Path(__file__).parents[2] / "docs" / "proofs" / "simulator-planted.md"
PATCHES: Final = sorted((Path(__file__).parents[1] / "planted").glob("*.patch"))
SEEDS_MAX: Final = 200
SHRINK_SECONDS: Final = 6
SAMPLE: Final = ("01", "20", "30")
"""Those that `make test` looks for."""
UPDATING: Final = "MOLDAU_UPDATE_GOLDEN" in os.environ


@dataclass(frozen=True)
class PlantedBug:
    """A patch, with what its first lines say."""

    path: Path
    what: str
    laws: str
    """What a run that finds it says is broken: one of these, with commas between them."""
    faults: str
    seconds: str
    clients: str
    """Those that take part; empty: all of them."""

    @classmethod
    def read(cls, path: Path) -> "PlantedBug":
        """Read a patch's first lines."""
        head = path.read_text().split("\n---", 1)[0]
        said = dict(re.findall(r"^(\w+): (.+)$", head, re.MULTILINE))
        return cls(
            path,
            head.splitlines()[0],
            said["Laws"],
            said["Faults"],
            said["Seconds"],
            said.get("Clients", ""),
        )

    @property
    def script(self) -> Path:
        """A script of faults that shows it; there need not be one."""
        return self.path.with_suffix(".script")

    def is_found_by(self, violation: str) -> bool:
        """Whether a run that says this has found the bug."""
        return any(law in violation for law in self.laws.split(", "))


@dataclass(frozen=True)
class FoundBug:
    """A run that has shown a bug."""

    scripts: tuple[str, ...]
    """What replays it, the shortest first."""
    law: str
    seeds: int
    """How many it took; 0: the script was known."""


BUGS: Final = [PlantedBug.read(path) for path in PATCHES]


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """Yield the directory with a copy of the package."""
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name)
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_all_apply(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("*.so"))
    for bug in BUGS:
        plant(bug, tmp_path, "--check")
    assert len(BUGS) >= 30
    assert len({bug.path.name[:2] for bug in BUGS}) == len(BUGS)


@pytest.mark.long
@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(
            bug,
            id=bug.path.stem,
            marks=() if bug.path.name.startswith(SAMPLE) else pytest.mark.soak,
        )
        for bug in BUGS
    ],
)
def test_it_is_found(bug: PlantedBug, package: Path) -> None:
    plant(bug, package)
    found = find(bug, package)
    clean = [each for each in found.scripts if not violation_without(each, package)]
    assert clean, "without the patch the run breaks a law as well"
    if UPDATING:
        bug.script.write_text(clean[0])
        note_row(bug, found)


def plant(bug: PlantedBug, directory: Path, *options: str) -> None:
    """Apply a patch; it has to fit exactly."""
    command = ["git", "apply", "-p1", *options, str(bug.path)]
    # git leaves out what is not in the repository that it finds, if it finds one.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(directory.parent)}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{bug.path.name}: {done.stderr}"


def find(bug: PlantedBug, package: Path) -> FoundBug:
    """Look for a run that shows a bug."""
    if not UPDATING and bug.script.exists():
        [replayed] = run(package, "replay", bug.script)
        if bug.is_found_by(replayed["violation"]):
            return FoundBug((bug.script.read_text(),), replayed["law"], 0)
    words = bug.faults, bug.seconds, bug.clients, SEEDS_MAX, bug.laws
    told = run(package, "search", *words, SHRINK_SECONDS if UPDATING else 0)
    violations = [each["violation"] for each in told]
    assert bug.is_found_by(violations[-1]), f"{bug.laws}: not in {violations}"
    return FoundBug((told[-1]["shrunk"], told[-1]["script"]), told[-1]["law"], len(told))


def violation_without(script: str, package: Path) -> str:
    """Return what is violated without the patch: the run must not be to blame for it."""
    path = package / "script"
    path.write_text(script)
    [replayed] = run(PACKAGE.parent, "replay", path)
    return str(replayed["violation"])


def note_row(bug: PlantedBug, found: FoundBug) -> None:
    """Replace a bug's row of the page that tells of all of them."""
    head, _, table = PAGE.read_text().partition("|---|---|---|---|\n")
    rows = {row.split(" ")[1]: row for row in table.splitlines()}
    number = bug.path.name[:2]
    law = found.law.partition(": ")[0]
    rows[number] = f"| {number} | {bug.what} | {law} | {found.seeds} |"
    lines = [rows[each] for each in sorted(rows)]
    PAGE.write_text(f"{head}|---|---|---|---|\n" + "\n".join([*lines, ""]))


def run(directory: Path, *arguments: object) -> list[Mapping[str, Any]]:
    """Run the program with the package in a directory; return what it tells."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(directory)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments} ended with {done.returncode}"
    return [json.loads(line) for line in done.stdout.splitlines()]
