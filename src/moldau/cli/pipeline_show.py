"""How the queries of an app are doing: a table that renews itself, or JSON lines."""

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from moldau.cli.frame import complain
from moldau.cli.printing import print_json, table

if TYPE_CHECKING:
    from moldau.pipelines.supervision.failures import Failure
    from moldau.pipelines.supervision.progress import QueryStatus
    from moldau.pipelines.supervision.supervisor import Audience

HEAD: Final = (
    "query", "state", "batch", "rows in", "rows out", "in/s", "out/s", "lag", "batch time",
    "state rows", "state size", "late rows", "skipped", "dead letters", "restarts", "now",
)  # fmt: skip
_IF_ANY: Final = ("skipped", "dead letters", "now")
"""Columns that are left out where there is nothing in them."""
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_UP_AND_CLEAR: Final = "\033[{}F\033[J"


def status_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return queries as a table; `rows` are `QueryStatus.to_json`."""
    cells = [_cells(row) for row in rows]
    shown = [
        place
        for place, name in enumerate(HEAD)
        if name not in _IF_ANY or any(each[place] for each in cells)
    ]
    head = tuple(HEAD[place] for place in shown)
    return table(head, [[each[place] for place in shown] for each in cells])


def _cells(row: Mapping[str, Any]) -> list[object]:
    state = row["state"]
    if state == "waiting":
        state = f"failed, retry in {row['retry_seconds']:.0f} s"
    seconds, size = row["batch_seconds"], row["state_bytes"]
    return [
        row["query"],
        state,
        row["batch"],
        row["total_rows_in"],
        row["total_rows_out"],
        _rate(row["rows_in_per_second"]),
        _rate(row["rows_out_per_second"]),
        row["lag"],
        None if seconds is None else f"{seconds:.1f} s",
        row["state_rows"],
        None if size is None else human_size(size),
        row["late_rows"],
        row["skipped"],
        row["dead_lettered"],
        row["restarts"],
        _now(row),
    ]


def _now(row: Mapping[str, Any]) -> str | None:
    """Return how far the batch is that is under way."""
    if row["phase"] is None:
        return None
    words = [row["phase"]]
    if row["batch_rows_so_far"] is not None:
        words.append(f"{row['batch_rows_so_far']} rows")
    if row["batch_tasks"]:
        words.append(f"{row['batch_tasks_done']} of {row['batch_tasks']} tasks")
    return ", ".join(words)


def _rate(rate: float | None) -> str | None:
    return None if rate is None else f"{rate:.0f}"


def human_size(size: float) -> str:
    """Return so many bytes in the unit that people would say."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


class StatusTable:
    """A table that takes its own place on a terminal; elsewhere it is printed once, at the end."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._lines: list[str] = []
        self._drawn = 0

    def show(self, statuses: "Sequence[QueryStatus]") -> None:
        """Take how all queries are now."""
        self._lines = status_table(each.to_json() for each in statuses).splitlines()
        if self._is_terminal:
            self._draw(self._lines)

    def report(self, query: str, line: str) -> None:
        """Say what has happened, above the table."""
        if self._is_terminal:
            self._draw([])
        complain(f"{query}: {line}")
        if self._is_terminal:
            self._draw(self._lines)

    def close(self) -> None:
        """Leave the last numbers where they can be read."""
        if not self._is_terminal and self._lines:
            print("\n".join(self._lines))

    def _draw(self, lines: Sequence[str]) -> None:
        # A line that is folded would take two, and the next table would not cover it.
        width = shutil.get_terminal_size().columns
        before = _UP_AND_CLEAR.format(self._drawn) if self._drawn else ""
        print(before + "".join(f"{line[:width]}\n" for line in lines), end="", flush=True)
        self._drawn = len(lines)


class JsonLines:
    """An object for each query, whenever it has changed; within a batch, only in the first."""

    def __init__(self) -> None:
        self._told: dict[str, QueryStatus] = {}

    def show(self, statuses: "Sequence[QueryStatus]") -> None:
        """Print what is new."""
        for each in statuses:
            status = each if each.last is None else replace(each, so_far=None)
            if self._told.get(status.query) != status:
                self._told[status.query] = status
                print_json(status.to_json())
        sys.stdout.flush()

    def report(self, query: str, line: str) -> None:
        """Say it to people as well: the objects have it as `reason`."""
        complain(f"{query}: {line}")

    def close(self) -> None:
        """Everything is printed."""


class ExplainedAudience:
    """Passes on to one that shows, and prints Spark's own words if they are wanted."""

    def __init__(self, shown: StatusTable | JsonLines, *, is_verbose: bool) -> None:
        self.show = shown.show
        self.report = shown.report
        self._is_verbose = is_verbose

    def explain(self, failure: "Failure") -> None:
        """Print all that was said."""
        if self._is_verbose:
            print(failure.text, file=sys.stderr)


if TYPE_CHECKING:
    _checked: type[Audience] = ExplainedAudience
