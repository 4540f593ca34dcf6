"""A text with some places changed, that knows where everything was before."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from moldau.pipelines.sql.language.lexing import Token


class TextEdit(NamedTuple):
    """Another text for what is between two positions."""

    start: int
    end: int
    text: str


class Rewritten:
    """What has become of a part of a text."""

    def __init__(self, original: str, begin: int, end: int, edits: Iterable[TextEdit]) -> None:
        parts: list[str] = []
        self._starts: list[int] = []
        self._origins: list[tuple[int, bool]] = []
        self._length = 0
        position = begin
        for edit in sorted(edits):
            assert edit.start >= position, "edits do not overlap"
            self._add(parts, original[position : edit.start], position, is_original=True)
            self._add(parts, edit.text, edit.start, is_original=False)
            position = edit.end
        self._add(parts, original[position:end], position, is_original=True)
        self.text = "".join(parts)
        self.end = end

    def _add(self, parts: list[str], text: str, origin: int, *, is_original: bool) -> None:
        if text:
            self._starts.append(self._length)
            self._origins.append((origin, is_original))
            self._length += len(text)
            parts.append(text)

    def origin(self, position: int) -> int:
        """Return where something of the new text was in the old one."""
        if position >= self._length or not self._starts:
            return self.end
        index = bisect_right(self._starts, position) - 1
        origin, is_original = self._origins[index]
        return origin + (position - self._starts[index] if is_original else 0)


def without_comments(text: str, tokens: Sequence[Token]) -> list[TextEdit]:
    """Return the edits that take the comments out, but not Spark's hints."""
    edits = []
    for before, behind in pairwise(tokens):
        gap = text[before.end : behind.start]
        if ("--" in gap or "/*" in gap) and "/*+" not in gap:
            edits.append(TextEdit(before.end, behind.start, "\n" if "\n" in gap else " "))
    return edits
