from types import SimpleNamespace

import pytest

from moldau.cli import moments
from moldau.cli.frame import CommandError
from moldau.cli.moments import parse_moment


def test_moments() -> None:
    assert parse_moment("1794816000000") == 1794816000000
    assert parse_moment("2026-11-16T08:00Z") == 1794816000000
    assert parse_moment("2026-11-16T09:00+01:00") == 1794816000000


def test_how_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "time", SimpleNamespace(time_ns=lambda: 10**18))
    for text, seconds in (("30s", 30), ("5m", 300), ("2h", 7200), ("7 days", 604800)):
        assert parse_moment(text) == 10**12 - seconds * 1000


def test_what_is_no_time() -> None:
    with pytest.raises(CommandError, match="'soon' is no time: 2h"):
        parse_moment("soon")
