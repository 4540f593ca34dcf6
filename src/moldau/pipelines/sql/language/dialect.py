"""Spark's dialect as sqlglot has it, with what it has wrong or not at all."""

import re
from collections.abc import Callable
from typing import Any, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

_EXPECTED: Final = re.compile(r"Expect(?:ing|ed) (\S+)$")
_CLASS: Final = re.compile(r"<class '(?:\w+\.)*(\w+)'>")


class MoldauParser(SparkParser):
    """Takes `payload:field` for a part of a variant, as Spark 4.2 does, and not for an alias."""

    COLON_IS_VARIANT_EXTRACT = True

    def _warn_unsupported(self) -> None:
        """Log nothing: what is no query is an error here."""


class Moldau(Spark):
    """What queries are written in."""

    class Tokenizer(Spark.Tokenizer):
        """Takes `'it''s'` for one string, as Spark 4 does, and not for two."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it

    Parser = MoldauParser

    def tokenize(self, sql: str, dialect: Any = None) -> list[Token]:
        """Return a text's tokens, with `window` as a name where it is one.

        To sqlglot `GROUP BY window(...)` ends GROUP BY, and begins `WINDOW w AS (...)`.
        """
        tokens = super().tokenize(sql, dialect)
        for index, token in enumerate(tokens):
            if token.token_type is TokenType.WINDOW:
                behind = [each.token_type for each in tokens[index + 2 : index + 4]]
                if behind != [TokenType.ALIAS, TokenType.L_PAREN]:
                    token.token_type = TokenType.VAR
        return tokens


class MisunderstoodError(Exception):
    """What sqlglot says of a text, and where."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


DIALECT: Final = Moldau()
DEPTH_MAX: Final = 150
"""Of what is understood: whoever renders it for another engine has an end of the stack, too."""


def parse_query(text: str) -> exp.Query:
    """Return what sqlglot understands of a SELECT."""
    found = _parse(text, lambda parser, tokens: parser.parse(tokens, text))
    if not isinstance(found, exp.Query):
        raise MisunderstoodError("expected a SELECT", 0, len(text))
    if found.find(exp.QueryTransform):
        start = max(text.upper().rfind("USING"), 0)
        message = "there is no TRANSFORM ... USING: it runs programs on the server"
        raise MisunderstoodError(message, start, start + len("USING"))
    _check_depth(found)
    return found


def parse_expression(text: str) -> exp.Expr:
    """Return what sqlglot understands of an expression."""
    return _parse(text, lambda parser, tokens: parser.parse_into(exp.Condition, tokens, text))


def _parse(text: str, parse: Callable[[Parser, list[Token]], list[exp.Expr | None]]) -> exp.Expr:
    # With all of the text as the context of an error, the length of what is before is its place.
    parser = DIALECT.parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=len(text))
    try:
        found = parse(parser, DIALECT.tokenize(text))
    except ParseError as error:
        raise _misunderstood(text, error) from None
    except RecursionError:
        raise MisunderstoodError("this is nested too deeply", 0, 1) from None
    except TokenError as error:
        start = error.start or 0
        raise MisunderstoodError("this cannot be read", start, start + 1) from None
    # sqlglot is large, and hostile text finds what its authors have not: an index that is not
    # there, a number that is too long. None of it is the server's end.
    except (SqlglotError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise MisunderstoodError(f"this cannot be read ({error})", 0, len(text)) from None
    if len(found) != 1 or found[0] is None:
        raise MisunderstoodError("expected an expression", 0, len(text))
    return found[0]


def _check_depth(query: exp.Query) -> None:
    found: list[tuple[exp.Expr, int]] = [(query, 0)]
    while found:
        node, depth = found.pop()
        if depth > DEPTH_MAX:
            raise MisunderstoodError("this is nested too deeply", 0, 1)
        # A sum of a thousand terms is as deep, but sqlglot renders it in a loop.
        is_chain = isinstance(node, exp.Binary | exp.SetOperation) and not isinstance(node, exp.Dot)
        found += [(child, depth + (not is_chain)) for child in node.iter_expressions()]


def _misunderstood(text: str, error: ParseError) -> MisunderstoodError:
    said = error.errors[0] if error.errors else {}
    start = len(said.get("start_context") or "")
    token = said.get("highlight") or ""
    end = start + len(token)
    description = str(said.get("description") or "this cannot be read")
    is_last = not text[end:].strip()
    if wanted := _EXPECTED.match(description):
        if is_last and token != wanted.group(1):
            return MisunderstoodError(
                f"expected {wanted.group(1)!r} behind {token!r}", end, end + 1
            )
        return MisunderstoodError(f"expected {wanted.group(1)!r}, found {token!r}", start, end)
    if description.startswith("Required"):
        where = (end, end + 1) if is_last else (start, end)
        return MisunderstoodError(
            f"something is missing {'behind' if is_last else 'before'} {token!r}", *where
        )
    if description.startswith("Invalid expression"):
        hint = "; a name with '-' is written `in-backquotes`" if token == "-" else ""
        return MisunderstoodError(f"{token!r} cannot be here{hint}", start, end)
    plain = description[:1].lower() + description[1:].partition(" but got <Token")[0]
    return MisunderstoodError(_CLASS.sub(r"\1", plain), start, end)
