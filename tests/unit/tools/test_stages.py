"""Stages say how long they took, and add up in one file."""

import json
from pathlib import Path

import pytest

from tools import stages
from tools.stages import Timing, lines, note, read_report

REPORT = """<testsuites><testsuite tests="3">
<testcase file="tests/a.py" name="test_one" time="1.5"/>
<testcase file="tests/a.py" name="test_two" time="0.25"/>
<testcase file="tests/a.py" name="test_one" time="0.5"/>
</testsuite></testsuites>"""


def test_a_tests_times_are_added_up(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    tests, files = read_report(report)
    assert tests == {"tests/a.py::test_one": 2.0, "tests/a.py::test_two": 0.25}
    assert files == {"tests/a.py": 2.25}


def test_stages_are_added_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cache/times.json"
    note(path, "unit", 100.0, Timing(30.0, 50.0, 2, {"tests/a.py::test_one": 2.0}, {}))
    note(path, "spark", 135.0, Timing(20.0, 30.0, 1, {}, {}))
    noted = json.loads(path.read_text())
    assert noted["total_seconds"] == 55
    assert list(noted["stages"]) == ["unit", "spark"]
    assert noted["stages"]["unit"]["seconds"] == 30
    assert noted["stages"]["unit"]["slowest"] == {"tests/a.py::test_one": 2.0}


def test_a_stage_tells_its_time_and_its_slowest_tests() -> None:
    told = lines("unit", Timing(61.4, 99.6, 2, {"tests/a.py::test_one": 2.0}, {}))
    assert told == [
        "stage unit: 61 s, 100 s of all cores, 2 tests; the slowest:",
        "     2.0 s  tests/a.py::test_one",
    ]


def test_a_stage_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "TIMES", tmp_path / "times.json")
    monkeypatch.setattr(stages, "STAGE_LISTS", tmp_path / "lists")
    monkeypatch.setattr(stages, "check_stages", lambda _: [])
    commands: list[tuple[str, ...]] = []

    def run(*command: str, **environment: str) -> bool:
        commands.append(command)
        return "tests/unit" not in command

    monkeypatch.setattr(stages, "_run", run)
    assert stages.main(["lint", "unit", "spark"])
    assert len(commands) == len(stages.LINT) + 2
    assert capsys.readouterr().out.endswith("failed: unit\n")
