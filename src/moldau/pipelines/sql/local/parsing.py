"""The text of a query, parsed so that nothing is assumed of its functions."""

from collections.abc import Callable
from typing import Any, Final

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from moldau.pipelines.sql.language.dialect import Moldau, MoldauParser
from moldau.pipelines.sql.local.refusals import GoesToSpark

NUMBER_SUFFIXES: Final = ("L", "S", "Y", "D", "F", "BD")
_OWN_SYNTAX: Final = ("SUBSTRING", "SUBSTR", "TRIM", "POSITION", "OVERLAY")
"""Functions that are called as any other, and with words between their arguments, too."""
_PARSERS: Final = MoldauParser.FUNCTION_PARSERS


def _plain_or(name: str) -> Callable[["PlainParser"], exp.Expr | None]:
    return lambda parser: parser.parse_plainly(name) or _PARSERS[name](parser)


class PlainParser(MoldauParser):
    """Knows no functions but those with a syntax of their own."""

    FUNCTIONS = {}  # noqa: RUF012 - as sqlglot declares it
    UNARY_PARSERS = {  # noqa: RUF012
        **MoldauParser.UNARY_PARSERS,
        # sqlglot leaves it out; in Spark `ORDER BY +2` is no place, and `+i` has a name of its own.
        TokenType.PLUS: lambda parser: exp.Anonymous(this="+", expressions=[parser._parse_unary()]),
    }
    FUNCTION_PARSERS = {  # noqa: RUF012
        **{name: _PARSERS[name] for name in ("CAST", "TRY_CAST")},
        "EXTRACT": lambda parser: parser.parse_extract(),
        **{name: _plain_or(name) for name in _OWN_SYNTAX},
    }

    def parse_plainly(self, name: str) -> exp.Expr | None:
        """Return a call whose arguments have commas between them, None if it is not so."""
        index = self._index
        args = self._parse_csv(self._parse_bitwise)
        if self._match(TokenType.R_PAREN, advance=False):
            return exp.Anonymous(this=name, expressions=args)
        self._retreat(index)
        return None

    def parse_extract(self) -> exp.Expr:
        """Return `extract(day FROM x)`, with the word as it is written: it is in the name."""
        part = self._parse_var(any_token=True)
        if not self._match(TokenType.FROM):
            self.raise_error("Expected FROM")
        return self.expression(exp.Extract(this=part, expression=self._parse_bitwise()))

    def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:  # noqa: FBT001 - as sqlglot has it
        """Return a cast, or the number that `1L` is: sqlglot makes the same of both."""
        given, suffix = kwargs["this"], self._prev.text.upper()
        if isinstance(given, exp.Literal) and suffix in NUMBER_SUFFIXES:
            return exp.Literal(this=given.name + suffix, is_string=False)
        return super().build_cast(strict, **kwargs)


class PlainMoldau(Moldau):
    """The language of queries, in which a function is its name and its arguments.

    sqlglot knows many functions, and takes some for others, whose results are nearly the same.
    """

    # `x IS NOT NULL` and `NOT x IS NULL` have different names in Spark.
    NORMALIZE_NOT_NULL = False
    Parser = PlainParser


def parse(text: str) -> exp.Expr:
    """Return what a query's text says; `GoesToSpark` if it is not understood here."""
    dialect = PlainMoldau()
    try:
        tokens = dialect.tokenize(text)
        found = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except (SqlglotError, RecursionError) as error:
        words = str(error).splitlines()[0]
        raise GoesToSpark(f"it is not understood here: {words}") from None
    if any(each.token_type is TokenType.PIPE_GT for each in tokens):
        # sqlglot makes clauses of it, and `|> WHERE` would see other columns.
        raise GoesToSpark("a query that goes on behind |>")
    if len(found) != 1 or not isinstance(found[0], exp.Expr):
        raise GoesToSpark("it is not one query")
    return found[0]
