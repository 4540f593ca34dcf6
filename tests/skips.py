"""A test that is skipped proves nothing: in CI it has failed, unless it is listed here.

Elsewhere a line tells how many would have.
"""

import os
from collections.abc import Generator
from fnmatch import fnmatchcase
from typing import Final

import pytest

ALLOWED: Final = {
    "tests/integration/test_file_regions.py::*": "cachestat came with Linux 6.5",
    "tests/unit/cli/checks/test_directory.py::*": "root may read what has no permissions",
    "tests/unit/cli/test_help.py::*": "Python 3.13 and newer lay help out in other ways",
    "tests/unit/runtime/test_broker_logs.py::*": "cachestat came with Linux 6.5",
    "tests/unit/runtime/test_file_disk.py::*": "not every file system knows RWF_NOWAIT",
}
"""Patterns of test ids, and why these may be skipped on some machine."""

IS_CI: Final = os.environ.get("CI", "").lower() in ("1", "true")


def is_allowed(nodeid: str) -> bool:
    """Return whether a test may be skipped."""
    return any(fnmatchcase(nodeid, pattern) for pattern in ALLOWED)


def failed_if_skipped(report: pytest.TestReport | pytest.CollectReport, *, is_ci: bool) -> bool:
    """Return whether a skip is not listed; in CI, make its report one of a failure."""
    if not report.skipped or hasattr(report, "wasxfail") or is_allowed(report.nodeid):
        return False
    if is_ci:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"{reason}\nIn CI a skip is a failure: tests/skips.py lists which are not."
        )
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at what a test says of itself."""
    report = yield
    failed_if_skipped(report, is_ci=IS_CI)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Look at a module that skips itself when it is imported."""
    report = yield
    failed_if_skipped(report, is_ci=IS_CI)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what CI would have failed."""
    skipped = {report.nodeid for report in terminalreporter.getreports("skipped")}
    if unlisted := sorted(each for each in skipped if not is_allowed(each)):
        terminalreporter.write_line(f"in CI these {len(unlisted)} skips would be failures:")
        for nodeid in unlisted:
            terminalreporter.write_line(f"  {nodeid}")
