"""Answers as lines of JSON: one for a message, for a result's columns, each row, and its end."""

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from moldau.pipelines.sql.answers import SettingsChanged, StatementAnswer, StatementMessage
from moldau.pipelines.sql.choosing import close
from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.ports import Result, ResultRow

CHUNK_BYTES: Final = 64 << 10


def answer_lines(number: int, answer: StatementAnswer) -> Iterator[bytes]:
    """Yield lines, several at once where there are many rows; `number` is the statement's."""
    match answer:
        case StatementMessage(text):
            yield _line({"statement": number, "message": text})
        case SettingsChanged(text, settings):
            yield _line({"statement": number, "message": text, "settings": dict(settings)})
        case Result():
            yield from _result_lines(number, answer)


def progress_line(done: int, total: int | None) -> bytes:
    """Return the line that says how many records were read, and of how many."""
    return _line({"progress": {"done": done, "total": total}})


def _result_lines(number: int, result: Result) -> Iterator[bytes]:
    head: dict[str, object] = {
        "statement": number,
        "columns": [{"name": each.name, "type": each.type} for each in result.columns],
        "engine": result.engine,
    }
    if result.notes:
        head["notes"] = list(result.notes)
    yield _line(head)
    count = 0
    try:
        for batch in result.batches:
            count += len(batch)
            yield from _row_chunks(batch)
    finally:
        close(result.batches)
    yield _line({"statement": number, "rows": count})


def _row_chunks(batch: Sequence[ResultRow]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for row in batch:
        line = _line({"row": list(row)})
        held.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


@dataclass(frozen=True, slots=True)
class StatementFailure:
    """A statement that has failed, and which one."""

    error: Exception
    number: int
    """0 if the text was not understood."""
    line_number: int
    is_ours: bool = False
    """Whether it is a mistake of the server's."""

    @property
    def value(self) -> Mapping[str, object]:
        """Return it as JSON has it: its text, caret and all, and where it is."""
        error, text = self.error, str(self.error)
        if self.is_ours:
            text = f"this should not happen, see the server's log: {type(error).__name__}: {text}"
        value: dict[str, object] = {"message": text}
        if self.number:
            value |= {"statement": self.number, "line": self.line_number}
        if isinstance(error, SqlError):
            value |= {"line": error.line, "column": error.column}
        return {"error": value}

    @property
    def line(self) -> bytes:
        """Return the last line of answers that have failed."""
        return _line(self.value)


def plain(value: object) -> object:  # noqa: PLR0911 - one for each type
    """Return a value as JSON can have it: times in UTC, decimals and bytes as texts."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(plain(key)): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return str(value)


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
