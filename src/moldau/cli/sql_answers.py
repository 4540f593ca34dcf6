"""What a server answers, printed: tables or JSON, notes and progress beside them."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from moldau.cli.printing import ProgressLine, counted, print_json
from moldau.cli.sql_table import NULL, RowTable

ROWS_HELD_MAX: Final = 1000
"""Of an answer that ends: the widths of its columns are those of so many rows."""

Write = Callable[[str], None]


def write_line(line: str) -> None:
    """Print a line, so that who reads along has it."""
    print(line, flush=True)


class AnswerPrinter:
    """Prints the answers to some statements; `live` are the numbers of those without an end."""

    def __init__(
        self,
        *,
        as_json: bool,
        live: Iterable[int] = (),
        write: Write = write_line,
        note: Write | None = None,
        has_counts: bool | None = None,
    ) -> None:
        self._as_json = as_json
        self._live = frozenset(live)
        self._write = write
        self._note = note or _to_stderr
        # A script can count by itself; that there is nothing is said to everybody.
        self._has_counts = sys.stderr.isatty() if has_counts is None else has_counts
        self._progress = ProgressLine()
        self._names: Sequence[str] = ()
        self._table: RowTable | None = None
        self._held: list[Sequence[Any]] = []
        self._is_live = False
        self.settings: Mapping[str, str] | None = None
        """What the session has set now, if an answer has changed it."""

    def take(self, answer: Mapping[str, Any]) -> None:
        """Print one line of a server's answer."""
        match answer:
            case {"progress": {"done": done, "total": total}}:
                of = "" if total is None else f" of {total:,}"
                self._progress(f"{done:,}{of} records read")
            case {"note": text}:
                self._progress.clear()
                self._note(str(text))
            case {"row": row}:
                self._progress.clear()
                self._take_row(row)
            case {"columns": columns}:
                self._begin(answer, columns)
            case {"rows": count}:
                self._end(int(count))
            case {"message": message}:
                self._progress.clear()
                self.settings = answer.get("settings", self.settings)
                if self._as_json:
                    print_json({"message": message})
                else:
                    self._write(str(message))
            case _:
                pass  # a newer server may say more

    def close(self) -> None:
        """Print what is held: nothing more comes."""
        self._progress.clear()
        self._flush()

    def _begin(self, answer: Mapping[str, Any], columns: Sequence[Mapping[str, str]]) -> None:
        self._progress.clear()
        self._is_live = answer.get("statement") in self._live
        self._names = [each["name"] for each in columns]
        # Where the server lists what it has, nothing is nothing; in data, NULL is a value.
        nothing = "" if answer.get("engine") == "server" else NULL
        self._table = RowTable(columns, is_live=self._is_live, nothing=nothing)
        for each in answer.get("notes", ()):
            self._note(str(each))

    def _take_row(self, row: Sequence[Any]) -> None:
        if self._as_json:
            print_json(dict(zip(self._names, row, strict=True)))
            if self._is_live:
                sys.stdout.flush()
            return
        self._held.append(row)
        if self._is_live or len(self._held) >= ROWS_HELD_MAX:
            self._flush()

    def _end(self, count: int) -> None:
        self._progress.clear()
        if self._as_json:
            return
        if count:
            self._flush()
        if self._has_counts or not count:
            self._note(counted(count, "row"))

    def _flush(self) -> None:
        if self._table is not None and self._held:
            for line in self._table.lines(self._held):
                self._write(line)
        self._held = []


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
