"""What a check has found."""

from typing import Literal, NamedTuple

CheckState = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """A thing that was looked at, how it is, and the way out."""

    state: CheckState
    what: str
    way_out: str = ""


def ok(what: str) -> Finding:
    """All is well."""
    return Finding("ok", what)


def warning(what: str, way_out: str) -> Finding:
    """It works, and may not for long."""
    return Finding("warning", what, way_out)


def problem(what: str, way_out: str) -> Finding:
    """It does not work."""
    return Finding("problem", what, way_out)
