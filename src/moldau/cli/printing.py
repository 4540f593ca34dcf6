"""What commands print: tables for people, JSON for scripts, progress for who waits."""

import base64
import json
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

PROGRESS_SECONDS: Final = 0.5
GAP: Final = "  "
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Align rows under their head; a column of numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [
        bool(cells) and all(_NUMBER.fullmatch(row[column]) for row in cells)
        for column in range(len(head))
    ]
    lines = [[name.upper() for name in head], *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        GAP.join(
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(str, value)) or "-"
        case _:
            return str(value)


def print_rows(
    head: Sequence[str], rows: Iterable[Mapping[str, object]], *, as_json: bool, empty: str = ""
) -> None:
    """Print rows by the names in `head`: as a table, or each as a JSON object."""
    if as_json:
        for row in rows:
            print_json(row)
        return
    lines = [[row[name] for name in head] for row in rows]
    if lines:
        print(table([name.replace("_", " ") for name in head], lines))
    elif empty:
        print(empty, file=sys.stderr)


def counted(number: int, what: str) -> str:
    """Return how many there are of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def print_json(value: Mapping[str, object]) -> None:
    """Print one object on one line."""
    print(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def text_or_base64(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes for JSON: as they are if they are UTF-8, else in base64 and named so."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


class ProgressLine:
    """A line on a terminal that says how far something is; elsewhere nothing."""

    def __init__(self, *, is_wanted: bool = True) -> None:
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._next = time.monotonic() + PROGRESS_SECONDS

    def __call__(self, line: str) -> None:
        """Replace the line, not too often."""
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_SECONDS
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
