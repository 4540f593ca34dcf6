"""What looks like a query, and must not go on as one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from moldau.pipelines.sql.language.cursor import Cursor
from moldau.pipelines.sql.language.errors import error_at
from moldau.pipelines.sql.language.lexing import Token

QUERY_TOKENS_MAX: Final = 10_000
"""Of one query: what is longer was not written by hand, and would keep a server busy."""
TYPES_NESTED_MAX: Final = 32
_TYPE_WORDS: Final = ("ARRAY", "MAP", "STRUCT")
# What is read is found by its name: these hide it, and Spark would read files for them.
_HIDING: Final = ("IDENTIFIER", "TABLE", "STREAM")
# Functions of Spark that call whatever Java there is: a question must not run programs.
_CALLING: Final = ("JAVA_METHOD", "REFLECT", "TRY_REFLECT")


def refuse_tokens(text: str, tokens: Sequence[Token]) -> None:
    """Raise what is wrong with a query before anybody has understood it."""
    refuse_size(text, tokens)
    _refuse_nothing_chosen(text, tokens)
    for before, token in pairwise(tokens):
        message = _refused(before, token)
        if message is not None:
            end = before.end if before.word else token.end
            raise error_at(text, before.start, end, message)


def refuse_size(text: str, tokens: Sequence[Token]) -> None:
    """Raise that a query or an expression would take too long."""
    if len(tokens) > QUERY_TOKENS_MAX:
        last = tokens[QUERY_TOKENS_MAX]
        raise error_at(text, last.start, last.end, f"a query has at most {QUERY_TOKENS_MAX} words")
    # sqlglot takes seconds for types that are nested as nobody nests them.
    depth = 0
    for before, token in pairwise(tokens):
        if token.text == "<" and before.word in _TYPE_WORDS:
            depth += 1
        elif token.text == ">" and depth:
            depth -= 1
        if depth > TYPES_NESTED_MAX:
            message = f"types are nested more than {TYPES_NESTED_MAX} deep"
            raise error_at(text, token.start, token.end, message)


def _refused(before: Token, token: Token) -> str | None:
    if before.word in _HIDING and token.text == "(":
        return f"there is no {before.word}(...); write the name itself"
    if token.text == "(" and before.text.strip("`").upper() in _CALLING:
        return f"{before.text} runs programs of Java, which no query may"
    # Spark has the arrow in functions of functions, which are in brackets.
    if before.text == "-" and token.text == ">" and token.depth == 0 and before.end == token.start:
        return "there is no '->' here; a field is written with a dot, as in place.city"
    return None


def _refuse_nothing_chosen(text: str, tokens: Sequence[Token]) -> None:
    # sqlglot does not mind if nothing is selected, nor a comma before FROM.
    cursor = Cursor(text, tokens)
    for token in tokens:
        cursor.advance()
        is_open = token.word == "SELECT" or token.text == ","
        if is_open and (cursor.at("FROM") or (cursor.next is None and token.word)):
            cursor.fail("a column or an expression")
