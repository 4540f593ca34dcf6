"""In CI a skip is a failure unless it is listed."""

import pytest

from tests import skips


def skipped(nodeid: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid, ("a.py", 1, "a"), {}, "skipped", ("a.py", 1, "Skipped: no kcat"), "call"
    )


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skips, "ALLOWED", {"tests/b.py::test_*": "a reason"})


def test_in_ci_a_skip_has_failed() -> None:
    report = skipped("tests/a.py::test_kcat[gzip]")
    assert skips.failed_if_skipped(report, is_ci=True)
    assert report.failed
    assert "no kcat" in str(report.longrepr)
    assert "tests/skips.py" in str(report.longrepr)


def test_a_listed_skip_stays_one() -> None:
    report = skipped("tests/b.py::test_kcat[gzip]")
    assert not skips.failed_if_skipped(report, is_ci=True)
    assert report.skipped


def test_elsewhere_it_is_only_told() -> None:
    report = skipped("tests/a.py::test_kcat[gzip]")
    assert skips.failed_if_skipped(report, is_ci=False)
    assert report.skipped
