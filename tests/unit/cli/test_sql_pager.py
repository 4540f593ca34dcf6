import pytest

from moldau.cli.sql_pager import Pager


def test_what_fits_is_printed(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("PAGER", "false")
    with Pager() as pager:
        for number in range(8):
            pager.write(str(number))
    assert capfd.readouterr().out.split() == list("01234567")


def test_what_does_not_fit_goes_through_a_pager(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("PAGER", "sed 's/^/| /'")
    with Pager() as pager:
        for number in range(9):
            pager.write(str(number))
    assert capfd.readouterr().out.splitlines() == [f"| {number}" for number in range(9)]


def test_a_pager_that_is_left_or_missing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "3")
    monkeypatch.setenv("PAGER", "head -1")
    with Pager() as pager:
        for number in range(100_000):
            pager.write(str(number))
    assert capfd.readouterr().out == "0\n"
    monkeypatch.setenv("PAGER", "no-such-pager")
    with Pager() as pager:
        for number in range(5):
            pager.write(str(number))
    assert capfd.readouterr().out.split() == list("01234")
