"""What is wrong with a text, and where: the line, and a caret under the place."""

from moldau.pipelines.errors import PipelineError

SHOWN_MAX = 100
"""Characters of a line that are shown."""


class SqlError(PipelineError):
    """Says what is wrong, and shows the place."""

    def __init__(self, said: str, line: int = 1, column: int = 1) -> None:
        super().__init__(said)
        self.line = line
        self.column = column


def error_at(text: str, start: int, end: int, message: str, hint: str | None = None) -> SqlError:
    """Return the error of what is between these positions of a text; `hint` goes to the caret."""
    start = min(start, len(text))
    line, column = place_of(text, start)
    begin = start - (column - 1)
    stop = _line_end(text, start)
    # A line of a megabyte is shown as the part of it that matters.
    first = begin if stop - begin <= SHOWN_MAX else max(begin, start - SHOWN_MAX // 2)
    shown = _printable(text[first : min(stop, first + SHOWN_MAX)])
    prefix = "..." if first > begin else ""
    width = max(1, min(end, stop, first + SHOWN_MAX) - start)
    marks = " " * (len(prefix) + start - first) + "^" * width + (f" {hint}" if hint else "")
    said = f"line {line}, column {column}: {message}\n  {prefix}{shown}\n  {marks}"
    return SqlError(said, line, column)


def place_of(text: str, position: int) -> tuple[int, int]:
    """Return the line and the column of a position, both from 1."""
    line = text.count("\n", 0, position) + 1
    return line, position - text.rfind("\n", 0, position)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _printable(line: str) -> str:
    return "".join(each if each.isprintable() else " " for each in line).rstrip()
