"""What the demo shows: a screen that renews itself, or a line for each row."""

import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from moldau.cli.printing import table

ROWS_SHOWN: Final = 6
LINES_AROUND: Final = 3
"""Of each table: a blank line, its title and its head."""
HEADS: Final = {
    "orders-enriched": ("order", "user", "name", "city", "amount"),
    "minute-totals": ("minute", "user", "total"),
    "views": ("minute", "page", "views"),
}
TITLES: Final = {
    "orders-enriched": "Orders, joined with the table of users",
    "minute-totals": "What users have spent, a row per minute that is over",
    "views": "What was looked at, a row per minute that is over",
}
_HOME_AND_CLEAR: Final = "\033[H\033[J"


class Screen:
    """The latest rows of each topic, by their time, not as they have come."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._rows: dict[str, list[Mapping[str, Any]]] = {topic: [] for topic in HEADS}

    @property
    def is_full(self) -> bool:
        """Whether there is something of every topic."""
        return all(self._rows.values())

    def add(self, found: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Take rows, each with its topic."""
        for topic, row in sorted(found, key=lambda each: (each[0], _place(each[1]))):
            self._rows[topic] = sorted((*self._rows[topic], row), key=_place)[-ROWS_SHOWN:]
            if not self._is_terminal:
                cells = ("-" if cell is None else cell for cell in cells_of(topic, row))
                print(f"{topic}:", *cells, flush=True)

    def draw(self, line: str) -> None:
        """Show everything on a terminal, with a line above it."""
        if self._is_terminal:
            print(f"{_HOME_AND_CLEAR}{line}\n{self.text()}", flush=True)

    def text(self) -> str:
        """Return all tables, with as many rows as the terminal has room for."""
        # Two lines are above them, and the cursor stands below: what does not fit scrolls away.
        room = (shutil.get_terminal_size().lines - 3) // len(HEADS) - LINES_AROUND
        shown = max(1, min(ROWS_SHOWN, room))
        return "\n".join(
            f"\n{TITLES[topic]} (topic {topic})\n"
            + table(head, [cells_of(topic, row) for row in self._rows[topic][-shown:]])
            for topic, head in HEADS.items()
        )


def cells_of(topic: str, row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return a row as it is shown."""
    match topic:
        case "orders-enriched":
            return row["id"], row["user"], row["name"], row["city"], f"{row['amount']:.2f}"
        case "minute-totals":
            return _minute(row), row["user"], f"{row['total']:.2f}"
        case _:
            return _minute(row), row["page"], row["views"]


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what rows are sorted by: their time, and then who or what they are of."""
    window = row.get("window")
    if window is None:
        return str(row["at"]), str(row["id"])
    return str(window["start"]), str(row.get("user") or row.get("page"))


def _minute(row: Mapping[str, Any]) -> str:
    """Return the minute as a clock on the wall shows it."""
    return datetime.fromisoformat(row["window"]["start"]).astimezone().strftime("%H:%M")
