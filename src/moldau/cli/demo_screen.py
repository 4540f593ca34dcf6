"""What the demo shows: a screen that renews itself, or a line for each row."""

import shutil
import sys
from collections import deque
from collections.abc import Mapping
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
    """The latest rows of each topic."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._rows: dict[str, deque[tuple[object, ...]]] = {
            topic: deque(maxlen=ROWS_SHOWN) for topic in HEADS
        }

    @property
    def is_full(self) -> bool:
        """Whether there is something of every topic."""
        return all(self._rows.values())

    def add(self, topic: str, row: Mapping[str, Any]) -> None:
        """Take a row of a topic."""
        cells = cells_of(topic, row)
        self._rows[topic].append(cells)
        if not self._is_terminal:
            print(f"{topic}:", *("-" if cell is None else cell for cell in cells), flush=True)

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
            f"\n{TITLES[topic]} (topic {topic})\n{table(head, list(self._rows[topic])[-shown:])}"
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


def _minute(row: Mapping[str, Any]) -> str:
    # 2026-11-16T08:00:00.000000Z
    return str(row["window"]["start"])[11:16]
