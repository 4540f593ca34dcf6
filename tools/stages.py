"""`python -m tools.stages NAME ...`: run stages of `make test`, say how long each takes and why.

Times go to .cache/test-times.json: `lint`, with which every run begins, starts them anew.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tools.test_ids import STAGE_LISTS, check_stages

TIMES = Path(".cache/test-times.json")
SLOWEST = 10
LONGEST_FILES = 30
BIN = Path(sys.executable).parent

# A test that hangs is ended, and says where.
BOUNDED = ("-o", "faulthandler_timeout=1500", "-o", "faulthandler_exit_on_timeout=true")


def _workers(count: int) -> tuple[str, ...]:
    """Return options for so many; tests/worker_groups.py has the groups, the longest first."""
    return ("-n", str(count), "--dist", "loadgroup", "--no-loadscope-reorder")


LINT = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    # Its cache has shown imports that were no longer there.
    ("lint-imports", "--no-cache"),
    ("python", "tools/tidy.py"),
)

TESTS = {
    "unit": (*_workers(2), "-q", "-m", "not long and not alone and not soak", "tests/unit"),
    "peers": (
        # Half of their time they wait: for sessions to expire, for members, for a JVM to start.
        *_workers(4),
        *(
            "-q",
            "-m",
            "not alone and not soak and (long or not unit)",
            "--ignore=tests/spark",
            "tests",
        ),
    ),
    "spark": (*_workers(3), "-q", "-m", "not alone and not soak", "tests/spark"),
    "alone": ("-q", "-m", "alone and not soak", "tests"),
}
"""Together they choose every test but those of soak, each once; the last one sees all files."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What a stage took: seconds that passed, seconds of all cores, and its slowest tests."""

    seconds: float
    cpu_seconds: float
    tests: int
    slowest: dict[str, float]
    files: dict[str, float]
    """The longest files: tests/worker_groups.py puts these first."""


def main(names: list[str]) -> int:
    """Run the named stages; one that fails does not stop those behind it."""
    failed = [name for name in names if not run_stage(name)]
    if found := check_stages(TESTS):
        print("\n".join(found))
        failed.append("test ids")
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return bool(failed)


def run_stage(name: str) -> bool:
    """Run a stage, print and note its time; return whether it passed."""
    if name == "lint":
        TIMES.unlink(missing_ok=True)
        shutil.rmtree(STAGE_LISTS, ignore_errors=True)
    began, cpu_before = time.time(), _cpu_seconds()
    if name == "lint":
        outcomes = [_run(*command) for command in LINT]
        passed, report = all(outcomes), None
    else:
        passed, report = _run_tests(name)
    cpu_seconds = _cpu_seconds() - cpu_before
    tests, files = read_report(report) if report is not None else ({}, {})
    timing = Timing(
        round(time.time() - began, 1),
        round(cpu_seconds, 1),
        len(tests),
        _longest(tests, SLOWEST),
        _longest(files, LONGEST_FILES),
    )
    note(TIMES, name, began, timing)
    print(*lines(name, timing), sep="\n", flush=True)
    return passed


def lines(name: str, timing: Timing) -> list[str]:
    """Return what is said of a stage."""
    told = f"stage {name}: {timing.seconds:.0f} s, {timing.cpu_seconds:.0f} s of all cores"
    if not timing.tests:
        return [told]
    return [
        f"{told}, {timing.tests} tests; the slowest:",
        *(f"{seconds:8.1f} s  {test}" for test, seconds in timing.slowest.items()),
    ]


def note(path: Path, name: str, began: float, timing: Timing) -> None:
    """Add a stage to the file; the total is what has passed since the first one began."""
    noted: dict[str, Any] = {"began": began, "stages": {}}
    if path.exists():
        noted = json.loads(path.read_text())
    noted["stages"][name] = asdict(timing)
    noted["total_seconds"] = round(began + timing.seconds - noted["began"], 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(noted, indent=1) + "\n")


def read_report(report: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Return the seconds of each test, with those of its fixtures, and of each file."""
    tests: defaultdict[str, float] = defaultdict(float)
    files: defaultdict[str, float] = defaultdict(float)
    for case in ET.parse(report).getroot().iter("testcase"):
        seconds, file = float(case.get("time", "0")), case.get("file", "")
        tests[f"{file}::{case.get('name')}"] += seconds
        files[file] += seconds
    return tests, files


def _longest(seconds: dict[str, float], count: int) -> dict[str, float]:
    ordered = sorted(seconds.items(), key=lambda each: -each[1])
    return {name: round(taken, 2) for name, taken in ordered[:count]}


def _run_tests(name: str) -> tuple[bool, Path | None]:
    STAGE_LISTS.mkdir(parents=True, exist_ok=True)
    report = STAGE_LISTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    options = (*BOUNDED, *TESTS[name], f"--junitxml={report}", "-o", "junit_family=xunit1")
    passed = _run(
        "python", "-m", "pytest", *options, MOLDAU_TEST_LIST=str(STAGE_LISTS / f"{name}.json")
    )
    return passed, report if report.exists() else None


def _run(program: str, *arguments: str, **environment: str) -> bool:
    # Where bytecode is not kept, every worker and every command that a test starts compiles anew.
    environment |= {"PYTHONDONTWRITEBYTECODE": ""}
    print("$", program, *arguments, flush=True)
    done = subprocess.run([BIN / program, *arguments], check=False, env=os.environ | environment)
    return done.returncode == 0


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
