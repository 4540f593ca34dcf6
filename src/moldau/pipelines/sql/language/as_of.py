"""`TIMESTAMP AS OF '...'` and `VERSION AS OF '...'` behind the name of a table."""

import json
from collections.abc import Sequence
from datetime import datetime

from moldau.pipelines.sql.language.cursor import Cursor
from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.lexing import Shape, Token
from moldau.pipelines.sql.language.queries import AsOf, AsOfOffsets, AsOfTime
from moldau.pipelines.sql.language.rewriting import TextEdit


def find_as_of(text: str, tokens: Sequence[Token]) -> list[tuple[Token, AsOf, TextEdit]]:
    """Return each one: the last token of the table's name, what it says, and how to cut it out."""
    found = []
    for index in range(1, len(tokens) - 2):
        word = tokens[index].word
        if word not in ("TIMESTAMP", "VERSION"):
            continue
        if [each.word for each in tokens[index + 1 : index + 3]] != ["AS", "OF"]:
            continue
        # `SELECT timestamp AS of`: a column, and what it is called.
        if tokens[index - 1].word == "SELECT" or tokens[index - 1].text in (",", "(", "."):
            continue
        begin = index - 1 if tokens[index - 1].word == "FOR" else index
        cursor = Cursor(text, tokens[index + 3 :] or tokens[index:])
        said = cursor.next if tokens[index + 3 :] else None
        if said is None or said.shape is not Shape.STRING:
            raise _expected(cursor, said or tokens[index + 2], word)
        as_of = _read_time(cursor, said) if word == "TIMESTAMP" else _read_offsets(cursor, said)
        found.append((tokens[begin - 1], as_of, TextEdit(tokens[begin].start, said.end, "")))
    return found


def _expected(cursor: Cursor, token: Token, word: str) -> SqlError:
    example = "'2026-01-01 00:00:00'" if word == "TIMESTAMP" else """'{"0":120,"1":98}'"""
    return cursor.error(f"expected a string behind {word} AS OF, such as {example}", token)


def _read_time(cursor: Cursor, token: Token) -> AsOfTime:
    try:
        return AsOfTime(datetime.fromisoformat(token.value.strip()))
    except ValueError:
        raise cursor.error("expected a time, such as '2026-01-01 00:00:00'", token) from None


def _read_offsets(cursor: Cursor, token: Token) -> AsOfOffsets:
    try:
        read = json.loads(token.value)
        offsets = {int(partition): offset for partition, offset in read.items()}
    except (ValueError, AttributeError, RecursionError):
        offsets = {}
    are_numbers = all(
        type(offset) is int and offset >= 0 and partition >= 0
        for partition, offset in offsets.items()
    )
    if not offsets or not are_numbers:
        raise cursor.error("""expected offsets by partition, such as '{"0":120,"1":98}'""", token)
    return AsOfOffsets(tuple(sorted(offsets.items())))
