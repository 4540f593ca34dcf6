"""What whoever runs an app's file says, instead of what is written there."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one run; None leaves what the file says."""

    bootstrap: str | None = None
    master: str | None = None
    checkpoints: str | None = None
    """A folder, or a URI that all of a cluster's machines see."""
    begin_ms: int | None = None
    """A backfill reads from this time on, in milliseconds since 1970."""
    end_ms: int | None = None
    """A backfill reads up to this time."""
    into: str | None = None
    """The topic that a backfill writes to, instead of the query's."""
    asks_first: bool = False
    """Whether to look for the brokers before Spark, which takes its time, is started."""
    is_quiet: bool = True
    is_test: bool = False
    """Whether somebody moves watermarks by records of time (`time_records`)."""


_AS_WRITTEN = RunOptions()
_current: ContextVar[RunOptions] = ContextVar("run_options", default=_AS_WRITTEN)


def current_run_options() -> RunOptions:
    """Return what an app that is made now has to follow."""
    return _current.get()


@contextmanager
def run_with(options: RunOptions) -> Iterator[None]:
    """Have the apps that are made within follow these options."""
    token = _current.set(options)
    try:
        yield
    finally:
        _current.reset(token)
