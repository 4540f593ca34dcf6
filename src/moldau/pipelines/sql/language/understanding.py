"""A SELECT as the user has written it, into a query with places for what its runner knows."""

from collections.abc import Sequence

from sqlglot import exp

from moldau.pipelines.sql.language.as_of import find_as_of
from moldau.pipelines.sql.language.dialect import MisunderstoodError, parse_expression, parse_query
from moldau.pipelines.sql.language.errors import error_at
from moldau.pipelines.sql.language.function_names import find_unknown
from moldau.pipelines.sql.language.lexing import Shape, Token
from moldau.pipelines.sql.language.queries import Fragment, QueryPiece, SelectQuery, WithinUse
from moldau.pipelines.sql.language.refusals import refuse_size, refuse_tokens
from moldau.pipelines.sql.language.rewriting import Rewritten, TextEdit, without_comments
from moldau.pipelines.sql.language.tails import QueryTail
from moldau.pipelines.sql.language.uses import Uses
from moldau.pipelines.sql.language.windows import rewrite_windows
from moldau.pipelines.sql.language.within import TWO_STREAMS, WithinClause, find_within


def understand(
    text: str, tokens: Sequence[Token], tail: QueryTail, *, is_result_kept: bool = False
) -> SelectQuery:
    """Return the query that these tokens are; `tail` is what Spark does not have.

    The result of a query that runs for ever is kept, in a topic.
    """
    refuse_tokens(text, tokens)
    times = find_as_of(text, tokens)
    if times and is_result_kept:
        message = "AS OF is for a SELECT that ends, not for a query that runs for ever"
        raise error_at(text, times[0][2].start, times[0][2].end, message)
    within = find_within(text, tokens)
    edits = [*tail.edits, *(edit for _, _, edit in times)]
    edits += [edit for each in within for edit in each.edits]
    edits += rewrite_windows(text, tokens, is_result_kept=is_result_kept)
    cut = [edit for edit in edits if not edit.text]
    comments = (
        each
        for each in without_comments(text, tokens)
        if not any(edit.start < each.end and each.start < edit.end for edit in cut)
    )
    rewritten = Rewritten(text, tokens[0].start, tokens[-1].end, [*edits, *comments])
    stripped = rewritten.text.rstrip()
    try:
        expression = parse_query(stripped)
    except MisunderstoodError as error:
        raise _in_place(text, rewritten, error) from None
    unknown = find_unknown(stripped, expression)
    if unknown is not None:
        start, end = rewritten.origin(unknown.start), rewritten.origin(unknown.end - 1) + 1
        raise error_at(text, start, end, unknown.words, unknown.hint)
    uses = Uses(expression, rewritten, {token.end: as_of for token, as_of, _ in times})
    for token, _, edit in times:
        if token.end not in uses.by_end:
            raise error_at(text, edit.start, edit.end, "AS OF comes behind the name of a table")
    joined = tuple(_within(text, each, uses) for each in within)
    return SelectQuery(_pieces(stripped, uses.found), expression, frozenset(uses.metadata), joined)


def _within(text: str, clause: WithinClause, uses: Uses) -> WithinUse:
    left, right = uses.by_end.get(clause.left_end), uses.by_end.get(clause.right_end)
    if left is None or right is None:
        raise error_at(text, clause.token.start, clause.token.end, TWO_STREAMS)
    return WithinUse(left, right, clause.before, clause.after, clause.grace, clause.outer)


def understand_fragment(text: str, tokens: Sequence[Token]) -> Fragment:
    """Return the expression that these tokens are."""
    # Most are literals, of thousands of rows: they need no parser.
    only = tokens[0]
    if len(tokens) == 1 and only.shape is Shape.STRING:
        return Fragment(only.text, exp.Literal.string(only.value))
    if len(tokens) == 1 and only.text.isdecimal():
        return Fragment(only.text, exp.Literal.number(only.text))
    if len(tokens) == 2 and only.text == "-" and tokens[1].text.isdecimal():
        return Fragment(f"-{tokens[1].text}", exp.Neg(this=exp.Literal.number(tokens[1].text)))
    refuse_size(text, tokens)
    comments = without_comments(text, tokens)
    rewritten = Rewritten(text, tokens[0].start, tokens[-1].end, comments)
    try:
        return Fragment(rewritten.text, parse_expression(rewritten.text))
    except MisunderstoodError as error:
        raise _in_place(text, rewritten, error) from None


def _in_place(text: str, rewritten: Rewritten, error: MisunderstoodError) -> Exception:
    start = rewritten.origin(error.start)
    end = rewritten.origin(error.end - 1) + 1 if error.end > error.start else start + 1
    return error_at(text, start, end, str(error))


def _pieces(text: str, found: Sequence[tuple[TextEdit, QueryPiece]]) -> tuple[QueryPiece, ...]:
    pieces: list[QueryPiece] = []
    position = 0
    for edit, use in found:
        pieces += [text[position : edit.start], use]
        position = edit.end
    return tuple(each for each in (*pieces, text[position:]) if each != "")
