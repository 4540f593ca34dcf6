"""ksqlDB's WINDOW clause, as Spark's functions in GROUP BY."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from moldau.pipelines.sql.language.cursor import Cursor, one_of
from moldau.pipelines.sql.language.lexing import Token
from moldau.pipelines.sql.language.rewriting import TextEdit

KINDS: Final = ("TUMBLING", "HOPPING", "SESSION")
UNITS: Final = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
_WATERMARK: Final = "say how late rows may be where the stream is declared: WITH (watermark='...')"


def rewrite_windows(text: str, tokens: Sequence[Token], *, is_result_kept: bool) -> list[TextEdit]:
    """Return what is to change, so that `WINDOW TUMBLING (...)` is Spark's `window(...)`.

    The rows of a windowed table are those of a key and a window, so a result that is kept has the
    column `window` (or `session_window`) even where it was not asked for.
    """
    edits = []
    for index, (token, behind) in enumerate(pairwise(tokens)):
        if token.word == "WINDOW" and behind.word in KINDS:
            edits += _rewrite(text, tokens, index, is_result_kept=is_result_kept)
    return edits


def _rewrite(
    text: str, tokens: Sequence[Token], index: int, *, is_result_kept: bool
) -> list[TextEdit]:
    clause = tokens[index]
    cursor = Cursor(text, tokens[index + 1 :])
    function, call = _take_call(cursor)
    behind = _same_block(tokens[index + 1 :], clause.depth)
    for before, token in pairwise(behind):
        if before.word == "WINDOW" and token.word in KINDS:
            raise cursor.error("a SELECT has one WINDOW", before)
        if before.word == "GROUP" and token.word == "BY":
            by = token
            break
    else:
        raise cursor.error("a WINDOW needs a GROUP BY behind it", clause)
    edits = [TextEdit(clause.start, cursor.previous.end, ""), TextEdit(by.end, by.end, f" {call},")]
    if is_result_kept and clause.depth == 0:
        edits += _choose(function, _block_before(tokens, index))
    return edits


def _choose(column: str, block: Sequence[Token]) -> list[TextEdit]:
    """Return the edit that adds a column to a SELECT, unless it is there."""
    for before, token in pairwise(block):
        if token.word == column.upper():
            return []
        if token.word == "FROM":
            return [TextEdit(before.end, before.end, f", {column}")]
    return []


def _take_call(cursor: Cursor) -> tuple[str, str]:
    kind = cursor.choose(*KINDS)
    cursor.expect("(")
    if kind == "SESSION":
        function, lengths = "session_window", [take_length(cursor)]
    else:
        cursor.expect("SIZE")
        function, lengths = "window", [take_length(cursor)]
    if kind == "HOPPING":
        cursor.expect(",", "ADVANCE", "BY")
        lengths.append(take_length(cursor))
    if cursor.take(",") and (refused := cursor.next) is not None:
        if refused.word == "GRACE":
            raise cursor.error(f"there is no GRACE PERIOD; {_WATERMARK}", refused)
        if refused.word == "RETENTION":
            raise cursor.error("there is no RETENTION; it is the topic's retention.ms", refused)
        cursor.fail("')'")
    cursor.expect(")")
    return function, f"{function}(rowtime, {', '.join(map(repr, lengths))})"


def take_length(cursor: Cursor, *, least: int = 1) -> str:
    """Take a length of time, and return it as Spark writes it: `1 minute`."""
    number = cursor.count("a number, as in 1 MINUTE", least=least)
    token = cursor.next
    unit = token.word.removesuffix("S") if token is not None else ""
    if unit not in UNITS:
        cursor.fail(f"a unit: {one_of(UNITS)}", known=UNITS)
    cursor.advance()
    return f"{number} {unit.lower()}{'s' * (number != 1)}"


def _block_before(tokens: Sequence[Token], index: int) -> list[Token]:
    """Return what is before in the same SELECT, without what is in brackets; the first first."""
    before = _same_block(tokens[:index][::-1], tokens[index].depth)
    selects = [place for place, token in enumerate(before) if token.word == "SELECT"]
    return before[: selects[0] + 1][::-1] if selects else []


def _same_block(tokens: Sequence[Token], depth: int) -> list[Token]:
    block = []
    for token in tokens:
        if token.depth < depth or token.word in ("UNION", "INTERSECT", "EXCEPT", "MINUS"):
            break
        if token.depth == depth:
            block.append(token)
    return block
