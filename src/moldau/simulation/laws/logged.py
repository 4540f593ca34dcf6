"""What a node logs as an error is a violation, unless a fault explains it."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from moldau.simulation.laws.violation import LawViolation


class ExplainedError(NamedTuple):
    """An error that a node logs when some fault has happened."""

    faults: frozenset[str]
    """Any of these explains it."""
    text: re.Pattern[str]
    """All of its text."""


_FAILURE: Final = r"simulated failure to \w+"
_DISK_FAULTS: Final = frozenset({"eio", "failed-sync"})

EXPLAINED: Final = (
    ExplainedError(
        _DISK_FAULTS,
        re.compile(
            rf"\S+: log directory: the log directory is offline until the next start: .*{_FAILURE}"
        ),
    ),
    # A partition that is made while there is no directory.
    ExplainedError(_DISK_FAULTS, re.compile(r"\S+ is offline: its log directory is not there")),
    ExplainedError(
        _DISK_FAULTS, re.compile(rf"\S+ is offline: log directory offline: .*{_FAILURE}")
    ),
    ExplainedError(
        _DISK_FAULTS, re.compile(rf"no snapshot of the metadata was written: .*{_FAILURE}")
    ),
    ExplainedError(frozenset({"disk-full"}), re.compile(r"the metadata log has no room: .*")),
    ExplainedError(
        frozenset({"disk-full"}), re.compile(r"no snapshot of the metadata was written: .*")
    ),
)


def check_error(text: str, error: BaseException | None, faults: Collection[str]) -> None:
    """Check an error that was logged; `faults` are the kinds that have happened."""
    is_explained = error is None and any(
        each.text.fullmatch(text) and not each.faults.isdisjoint(faults) for each in EXPLAINED
    )
    if not is_explained:
        raise LawViolation("logged error", text + (f": {error!r}" if error else ""))
