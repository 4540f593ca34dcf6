"""Whoever asks, and goes."""

import threading
from types import SimpleNamespace

import pytest

from moldau.pipelines.sql import asking
from moldau.pipelines.sql.asking import Asker, CancelledError


def test_what_is_to_be_called_is_called_once() -> None:
    asker, called = Asker(), list[str]()
    asker.on_cancel(lambda: called.append("first"))
    forget = asker.on_cancel(lambda: called.append("forgotten"))
    forget()
    asker.check()
    assert not asker.wait(0)
    asker.cancel()
    asker.cancel()
    assert called == ["first"]
    forget()


def test_whoever_comes_too_late_is_called_at_once() -> None:
    asker, called = Asker(), list[str]()
    asker.cancel()
    asker.on_cancel(lambda: called.append("late"))()
    assert called == ["late"]
    assert asker.is_cancelled
    assert asker.wait(60)
    with pytest.raises(CancelledError):
        asker.check()


def test_what_takes_long_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "NOTE_SECONDS", 0.01)
    notes: list[str] = []
    twice = threading.Event()

    def note(line: str) -> None:
        notes.append(line)
        if len(notes) == 2:
            twice.set()

    asker = Asker(note=note)
    with asker.working("Spark plans x"):
        assert twice.wait(60)
    assert set(notes) == {"Spark plans x (0 s so far)"}
    notes.clear()
    monkeypatch.setattr(asking, "NOTE_SECONDS", 60)
    with asker.working("Spark plans y"):
        pass
    assert notes == [], "it was a moment"
    with asker.working("Spark is starting", is_long=True):
        assert notes == ["Spark is starting"]
    assert notes[1].startswith("Spark is starting: done, after ")


def test_an_engine_is_interrupted_until_it_hears_it() -> None:
    asker, interrupted = Asker(), list[int]()
    heard = threading.Event()

    def interrupt() -> None:
        interrupted.append(1)
        if len(interrupted) == 3:
            heard.set()

    with asker.interrupting(interrupt):
        asker.cancel()
        assert heard.wait(60)
    count = len(interrupted)
    # One that begins when the asker has gone does not go on for long either, and has an end, too.
    heard.clear()
    with asker.interrupting(heard.set):
        assert heard.wait(60)
    assert len(interrupted) == count


def test_an_engine_that_is_done_is_left_alone() -> None:
    asker, interrupted = Asker(), list[int]()
    with asker.interrupting(lambda: interrupted.append(1)):
        pass
    asker.cancel()
    assert interrupted == []


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=lambda: now[0]))
    told: list[tuple[int, int | None]] = []
    asker = Asker(lambda done, total: told.append((done, total)))
    asker.progress(1)
    now[0] += 0.3
    asker.progress(2, 10)
    asker.progress(3, 10)
    now[0] += 0.3
    asker.progress(4)
    assert told == [(2, 10), (4, None)]
