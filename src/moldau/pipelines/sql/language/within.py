"""ksqlDB's WITHIN between two streams, as a condition on the times of both behind ON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from moldau.pipelines.sql.language.cursor import Cursor
from moldau.pipelines.sql.language.lexing import Shape, Token
from moldau.pipelines.sql.language.rewriting import TextEdit
from moldau.pipelines.sql.language.windows import KINDS, UNITS, take_length

_SIDES: Final = ("LEFT", "RIGHT", "FULL")
_JOINING: Final = (*_SIDES, "INNER", "OUTER", "CROSS", "NATURAL", "SEMI", "ANTI", "JOIN")
_BEHIND_ON: Final = (
    *_JOINING, "LATERAL", "WHERE", "GROUP", "HAVING", "WINDOW", "PARTITION", "EMIT", "QUALIFY",
    "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "MINUS",
)  # fmt: skip
TWO_STREAMS: Final = (
    "WITHIN joins two streams by their names, FROM a JOIN b WITHIN ...; write what else is joined "
    "or in brackets to a stream of its own, with CREATE STREAM ... AS SELECT"
)


@dataclass(frozen=True, slots=True)
class WithinClause:
    """Such a clause, and what is to change for Spark."""

    token: Token
    left_end: int
    """Where the name of the stream behind FROM ends, in the text."""
    right_end: int
    """The same of the stream that is joined."""
    before: str
    """How much earlier than its counterpart the row of the right stream may be, as `1 hour`."""
    after: str
    grace: str | None
    outer: str
    """Which side's rows are there without a counterpart: LEFT, RIGHT, FULL, or none."""
    edits: tuple[TextEdit, ...]


def find_within(text: str, tokens: Sequence[Token]) -> list[WithinClause]:
    """Return each `WITHIN 1 HOUR`, `WITHIN (1 HOUR, 10 MINUTES)`, with its GRACE PERIOD."""
    return [_read(text, tokens, index) for index in range(len(tokens)) if _is_clause(tokens, index)]


def _is_clause(tokens: Sequence[Token], index: int) -> bool:
    # `within` is a fine name, and percentile_cont(...) WITHIN GROUP (...) is Spark's.
    if tokens[index].word != "WITHIN" or not tokens[index + 1 :]:
        return False
    behind = tokens[index + 1]
    if behind.shape is Shape.NUMBER or behind.text == "(":
        return True
    is_length = behind.shape is Shape.STRING or behind.word.removesuffix("S") in UNITS
    return is_length and _is_joining(_block(tokens, index))


def _block(tokens: Sequence[Token], index: int) -> list[Token]:
    """Return what is before in the same brackets, without what is in further ones."""
    depth = tokens[index].depth
    begin = index
    while begin and tokens[begin - 1].depth >= depth:
        begin -= 1
    return [token for token in tokens[begin:index] if token.depth == depth]


def _is_joining(before: Sequence[Token]) -> bool:
    """Return whether this is between a JOIN and its ON."""
    words = (token.word for token in reversed(before))
    return next((each for each in words if each in ("JOIN", "ON", "FROM", "SELECT")), "") == "JOIN"


def _read(text: str, tokens: Sequence[Token], index: int) -> WithinClause:
    token, before = tokens[index], _block(tokens, index)
    cursor = Cursor(text, tokens[index + 1 :])
    if not _is_joining(before):
        raise cursor.error("WITHIN stands behind a JOIN: FROM a JOIN b WITHIN 1 HOUR ON ...", token)
    left, outer, right = _sides(cursor, token, before)
    if cursor.take("("):
        earlier = take_length(cursor, least=0)
        cursor.expect(",")
        later = take_length(cursor, least=0)
        cursor.expect(")")
    else:
        earlier = later = take_length(cursor, least=0)
    grace = None
    if cursor.take("GRACE"):
        cursor.expect("PERIOD")
        grace = take_length(cursor, least=0)
    last, on = cursor.previous, cursor.next
    if cursor.at("USING"):
        cursor.fail("ON behind WITHIN, as in ON a.id = b.id")
    cursor.expect("ON")
    assert on is not None
    end = _end_of_condition(tokens, tokens.index(on))
    if end == on:
        cursor.fail("a condition, as in a.id = b.id")
    bound = (
        f"{right.called}.rowtime BETWEEN {left.called}.rowtime - INTERVAL '{earlier}' "
        f"AND {left.called}.rowtime + INTERVAL '{later}'"
    )
    edits = (
        TextEdit(token.start, last.end, ""),
        # The condition itself may have an OR.
        TextEdit(on.end, on.end, f" {bound} AND ("),
        TextEdit(end.end, end.end, ")"),
    )
    return WithinClause(token, left.end, right.end, earlier, later, grace, outer, edits)


def _end_of_condition(tokens: Sequence[Token], on: int) -> Token:
    """Return the last token of what is behind ON."""
    depth = tokens[on].depth
    for index in range(on + 1, len(tokens)):
        token = tokens[index]
        is_word = token.word in _BEHIND_ON and not _is_name(tokens, index)
        if token.depth < depth or (token.depth == depth and (is_word or token.text == ",")):
            return tokens[index - 1]
    return tokens[-1]


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a keyword is none here: `left(a, 1)` is a function, `a.limit` a column."""
    behind = tokens[index + 1 : index + 3]
    if tokens[index].word == "WINDOW":
        return not any(each.word in (*KINDS, "AS") for each in behind)
    is_call = any(each.text == "(" for each in behind[:1])
    return tokens[index - 1].text == "." or (tokens[index].word in _SIDES and is_call)


class _Name(NamedTuple):
    end: int
    """Where the name ends in the text, without its alias."""
    called: str
    """What columns are qualified with, as it is written."""


def _sides(cursor: Cursor, clause: Token, before: Sequence[Token]) -> tuple[_Name, str, _Name]:
    """Return the stream behind FROM, whose rows are always there (LEFT, ...), and the other."""
    words = [token.word for token in before]
    join = len(words) - 1 - words[::-1].index("JOIN")
    begin = join
    while begin and words[begin - 1] in _JOINING:
        begin -= 1
    if "FROM" not in words[:begin]:
        raise cursor.error(TWO_STREAMS, clause)
    origin = begin - 1 - words[:begin][::-1].index("FROM")
    kinds = set(words[begin:join])
    if not kinds <= {*_SIDES, "INNER", "OUTER"}:
        joined = " ".join(words[begin : join + 1])
        message = f"{joined} has no WITHIN: of two streams there are JOIN, LEFT, RIGHT, FULL JOIN"
        raise cursor.error(message, clause)
    left = _name(cursor, clause, before[origin + 1 : begin])
    right = _name(cursor, clause, before[join + 1 :])
    return left, next((each for each in _SIDES if each in kinds), ""), right


def _name(cursor: Cursor, clause: Token, tokens: Sequence[Token]) -> _Name:
    """Return a stream by its name, with its alias if it has one."""
    end = 1
    while tokens[end : end + 1] and tokens[end].text == ".":
        end += 2
    names = [*tokens[:end:2], *tokens[end:][-1:]]
    aliased = [each.word == "AS" for each in tokens[end:]]
    are_names = all(each.shape in (Shape.WORD, Shape.QUOTED) for each in names)
    if len(tokens) < end or not are_names or aliased not in ([], [False], [True, False]):
        raise cursor.error(TWO_STREAMS, clause)
    return _Name(tokens[end - 1].end, tokens[-1].text)
