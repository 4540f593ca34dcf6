"""A text as statements."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from moldau.pipelines.sql.language.cursor import Cursor, one_of
from moldau.pipelines.sql.language.declaring import check_declared, check_topic, take_columns
from moldau.pipelines.sql.language.errors import place_of
from moldau.pipelines.sql.language.lexing import Shape, Token, split
from moldau.pipelines.sql.language.properties import take_properties
from moldau.pipelines.sql.language.queries import Fragment, SelectQuery
from moldau.pipelines.sql.language.statements import (
    CreateAs,
    CreateSource,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    PauseQuery,
    Print,
    ResumeQuery,
    Select,
    Set,
    Show,
    Shown,
    Statement,
    Terminate,
    Unset,
)
from moldau.pipelines.sql.language.tails import QueryTail, find_tail, split_at_commas
from moldau.pipelines.sql.language.understanding import understand, understand_fragment
from moldau.pipelines.sql.relations import RelationKind

Where = tuple[str, int, int]
"""A statement's text, line and column."""

_QUERY: Final = ("SELECT", "WITH", "FROM", "(")


def parse(text: str) -> list[Statement]:
    """Return the statements of a text; they end with `;`, the last one may do without."""
    return [_parse_one(text, tokens) for tokens in split(text)]


def _parse_one(text: str, tokens: Sequence[Token]) -> Statement:
    where = (text[tokens[0].start : tokens[-1].end], *place_of(text, tokens[0].start))
    cursor = Cursor(text, tokens)
    if _is_query(cursor):
        return _select(cursor, where)
    first = tokens[0].word
    if first not in _STATEMENTS:
        known = ("SELECT", *_STATEMENTS)
        cursor.fail(f"a statement: {one_of(known)}", known=known)
    cursor.advance()
    statement = _STATEMENTS[first](cursor, where)
    cursor.end()
    return statement


def _is_query(cursor: Cursor) -> bool:
    return any(cursor.at(each) for each in _QUERY)


# Queries.


def _select(cursor: Cursor, where: Where) -> Select:
    query, tail = _take_query(cursor, is_kept=False)
    if tail.partition_token is not None:
        raise cursor.error(
            "PARTITION BY is for CREATE ... AS SELECT and INSERT", tail.partition_token
        )
    if tail.emit_token is not None and any(each.as_of is not None for each in query.tables):
        raise cursor.error("what is AS OF does not change: leave EMIT out", tail.emit_token)
    return Select(*where, query, tail.emit, tail.limit)


def _take_query(cursor: Cursor, *, is_kept: bool) -> tuple[SelectQuery, QueryTail]:
    if not _is_query(cursor):
        cursor.fail("SELECT", known=["SELECT"])
    tokens = cursor.take_rest()
    tail = find_tail(cursor.text, tokens)
    return understand(cursor.text, tokens, tail, is_result_kept=is_kept), tail


def _take_endless_query(cursor: Cursor) -> tuple[SelectQuery, QueryTail, tuple[Fragment, ...]]:
    query, tail = _take_query(cursor, is_kept=True)
    has_limit = tail.limit is not None or query.expression.args.get("limit") is not None
    if has_limit and tail.limit_token is not None:
        message = "a query that runs for ever has no LIMIT"
        raise cursor.error(message, tail.limit_token)
    by = tuple(understand_fragment(cursor.text, each) for each in tail.partition_by)
    return query, tail, by


# What declares.


def _create(cursor: Cursor, where: Where) -> Statement:
    if or_replace := cursor.take("OR"):
        cursor.expect("REPLACE")
    kind = RelationKind(cursor.choose("STREAM", "TABLE"))
    token = cursor.next
    if if_not_exists := cursor.take("IF"):
        cursor.expect("NOT", "EXISTS")
    if or_replace and if_not_exists and token is not None:
        raise cursor.error("it is OR REPLACE, or IF NOT EXISTS; leave one out", token)
    name = cursor.name(f"the name of a {kind.lower()}")
    name_token = cursor.previous
    if cursor.at("("):
        columns = take_columns(cursor, kind)
        said = take_properties(cursor)
        if cursor.at("AS"):
            cursor.fail("';', since the columns of a SELECT are its own")
        properties = check_declared(cursor, name_token, columns, said)
        return CreateSource(*where, kind, name, columns, properties, if_not_exists, or_replace)
    said = take_properties(cursor)
    if not cursor.take("AS"):
        cursor.fail("AS SELECT" if said.tokens else "'(', WITH or AS SELECT", known=["WITH", "AS"])
    check_topic(cursor, name_token, said.properties)
    if said.properties.format == "kafka":
        message = "what a SELECT gives has no format kafka; json is the default"
        raise cursor.error(message, said.tokens["format"])
    query, tail, by = _take_endless_query(cursor)
    return CreateAs(
        *where, kind, name, query, said.properties, by, tail.emit, if_not_exists, or_replace
    )


def _drop(cursor: Cursor, where: Where) -> Drop:
    kind = RelationKind(cursor.choose("STREAM", "TABLE"))
    if if_exists := cursor.take("IF"):
        cursor.expect("EXISTS")
    name = cursor.name(f"the name of a {kind.lower()}")
    if delete_topic := cursor.take("DELETE"):
        cursor.expect("TOPIC")
    return Drop(*where, kind, name, if_exists, delete_topic)


def _insert(cursor: Cursor, where: Where) -> Statement:
    cursor.expect("INTO")
    name = cursor.name("the name of a stream or a table")
    columns: list[str] = []
    if cursor.at("(") and not (cursor.at("(", "SELECT") or cursor.at("(", "WITH")):
        cursor.take("(")
        columns.append(cursor.name("the name of a column"))
        while cursor.take(","):
            columns.append(cursor.name("the name of a column"))
        cursor.expect(")")
    if cursor.take("VALUES"):
        rows = [_row(cursor, len(columns))]
        while cursor.take(","):
            rows.append(_row(cursor, len(rows[0])))
        return InsertValues(*where, name, tuple(columns), tuple(rows))
    if not _is_query(cursor):
        cursor.fail("VALUES or SELECT", known=["VALUES", "SELECT"])
    query, tail, by = _take_endless_query(cursor)
    return InsertSelect(*where, name, tuple(columns), query, by, tail.emit)


def _row(cursor: Cursor, width: int) -> tuple[Fragment, ...]:
    opening = cursor.next
    cursor.expect("(")
    assert opening is not None
    inside = cursor.take_inside(opening)
    values = split_at_commas(inside)
    if not all(values):
        raise cursor.error("a value is missing", opening)
    if width and len(values) != width:
        raise cursor.error(f"expected {width} values, found {len(values)}", opening)
    cursor.expect(")")
    return tuple(understand_fragment(cursor.text, each) for each in values)


# What asks and what controls.


def _show(cursor: Cursor, where: Where) -> Show:
    return Show(*where, Shown(cursor.choose(*Shown)))


def _describe(cursor: Cursor, where: Where) -> Describe:
    is_first = cursor.take("EXTENDED")
    name = cursor.loose_name("the name of a stream or a table")
    return Describe(*where, name, cursor.take("EXTENDED") or is_first)


def _explain(cursor: Cursor, where: Where) -> Explain:
    token = cursor.next
    if token is not None and (_is_query(cursor) or token.word in ("CREATE", "INSERT")):
        return Explain(*where, _parse_one(cursor.text, cursor.take_rest()))
    return Explain(*where, cursor.loose_name("a SELECT, or the id of a query"))


def _print(cursor: Cursor, where: Where) -> Print:
    topic = cursor.loose_name("the name of a topic")
    if from_beginning := cursor.take("FROM"):
        cursor.expect("BEGINNING")
    interval = 1
    if cursor.take("INTERVAL") or cursor.take("SAMPLE"):
        interval = cursor.count("a number above 0")
    limit = cursor.count("a number of records above 0") if cursor.take("LIMIT") else None
    return Print(*where, topic, from_beginning, interval, limit)


def _terminate(cursor: Cursor, where: Where) -> Terminate:
    return Terminate(*where, _query_id(cursor))


def _pause(cursor: Cursor, where: Where) -> PauseQuery:
    return PauseQuery(*where, _query_id(cursor))


def _resume(cursor: Cursor, where: Where) -> ResumeQuery:
    return ResumeQuery(*where, _query_id(cursor))


def _query_id(cursor: Cursor) -> str | None:
    return None if cursor.take("ALL") else cursor.loose_name("the id of a query, or ALL")


def _set(cursor: Cursor, where: Where) -> Set:
    name = cursor.loose_name("the name of a setting")
    cursor.expect("=")
    token = cursor.next
    if token is None or token.shape is Shape.MARK:
        cursor.fail("a value, in quotes")
    if token.shape is Shape.STRING:
        return Set(*where, name, cursor.advance().value)
    return Set(*where, name, cursor.loose_name("a value, in quotes"))


def _unset(cursor: Cursor, where: Where) -> Unset:
    return Unset(*where, cursor.loose_name("the name of a setting"))


_STATEMENTS: Final[Mapping[str, Callable[[Cursor, Where], Statement]]] = {
    "CREATE": _create,
    "INSERT": _insert,
    "SHOW": _show,
    "LIST": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
    "PRINT": _print,
    "DROP": _drop,
    "TERMINATE": _terminate,
    "PAUSE": _pause,
    "RESUME": _resume,
    "SET": _set,
    "UNSET": _unset,
}
