"""What ksqlDB has behind a SELECT: PARTITION BY, EMIT, and LIMIT behind that."""

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.pipelines.sql.language.cursor import Cursor
from moldau.pipelines.sql.language.lexing import Token
from moldau.pipelines.sql.language.queries import EmitWhen
from moldau.pipelines.sql.language.rewriting import TextEdit


@dataclass(frozen=True, slots=True)
class QueryTail:
    """The clauses, where they are, and what is to be cut out for Spark."""

    edits: tuple[TextEdit, ...] = ()
    emit: EmitWhen | None = None
    limit: int | None = None
    """Of a query with EMIT; that of another is Spark's."""
    emit_token: Token | None = None
    limit_token: Token | None = None
    """Also of a LIMIT without EMIT."""
    partition_token: Token | None = None
    partition_by: tuple[Sequence[Token], ...] = ()


def find_tail(text: str, tokens: Sequence[Token]) -> QueryTail:
    """Return the clauses behind a SELECT."""
    outer = [index for index, token in enumerate(tokens) if token.depth == 0]
    limit_index = next((i for i in reversed(outer) if tokens[i].word == "LIMIT"), None)
    emit_index = next((i for i in outer[1:] if _is_emit(tokens, i)), None)
    emit = limit = None
    edits = []
    if emit_index is not None:
        begin = emit_index
        cursor = Cursor(text, tokens[emit_index + 1 :])
        emit = EmitWhen(cursor.choose("CHANGES", "FINAL").lower())
        if cursor.take("LIMIT"):
            limit = cursor.count("a number of rows above 0")
        elif limit_index is not None and limit_index == emit_index - 2:
            begin = limit_index
            limit = Cursor(text, tokens[limit_index + 1 : emit_index]).count(
                "a number of rows above 0"
            )
        cursor.end()
        edits.append(TextEdit(tokens[begin].start, tokens[-1].end, ""))
    partition, by, cut = _find_partition_by(text, tokens, outer)
    return QueryTail(
        (*edits, *cut),
        emit,
        limit,
        None if emit_index is None else tokens[emit_index],
        None if limit_index is None else tokens[limit_index],
        partition,
        by,
    )


def _is_emit(tokens: Sequence[Token], index: int) -> bool:
    # `emit` is a fine name for a column: it is the clause if only a word, and LIMIT, follow.
    behind = tokens[index + 1 : index + 3]
    if tokens[index].word != "EMIT" or not behind or not behind[0].word:
        return False
    before = tokens[index - 1]
    if before.word in ("SELECT", "BY") or before.text in (".", ","):
        return False
    if len(behind) == 1:
        return True
    return behind[0].word in ("CHANGES", "FINAL") and (behind[1].word or ",") not in ("FROM", ",")


def _find_partition_by(
    text: str, tokens: Sequence[Token], outer: Sequence[int]
) -> tuple[Token | None, tuple[Sequence[Token], ...], list[TextEdit]]:
    """Find it outside of brackets: inside, it is that of Spark's window functions."""
    for index in outer:
        if tokens[index].word == "PARTITION" and tokens[index + 1 : index + 2]:
            if tokens[index + 1].word != "BY":
                continue
            stop = next(
                (i for i in outer if i > index and tokens[i].word in ("EMIT", "LIMIT", "ORDER")),
                len(tokens),
            )
            parts = split_at_commas(tokens[index + 2 : stop])
            for place, part in enumerate(parts):
                if not part:
                    cursor = Cursor(text, tokens)
                    cursor.move(index + 2 + sum(len(p) + 1 for p in parts[:place]))
                    cursor.fail("an expression to partition by")
            return tokens[index], parts, [TextEdit(tokens[index].start, tokens[stop - 1].end, "")]
    return None, (), []


def split_at_commas(tokens: Sequence[Token]) -> tuple[Sequence[Token], ...]:
    """Return what is between the commas, but those in brackets."""
    parts: list[list[Token]] = [[]]
    depth = min((token.depth for token in tokens), default=0)
    for token in tokens:
        if token.text == "," and token.depth == depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(parts)
