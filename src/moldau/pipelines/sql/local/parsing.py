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
_COMPARISONS: Final = {**MoldauParser.EQUALITY, **MoldauParser.COMPARISON}
_PREDICATES: Final = (
    TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE,
)  # fmt: skip
_TERMS: Final = {
    TokenType.PLUS: exp.Add,
    TokenType.DASH: exp.Sub,
    TokenType.DPIPE: exp.DPipe,
}


def _plain_or(name: str) -> Callable[["PlainParser"], exp.Expr | None]:
    return lambda parser: parser.parse_plainly(name) or _PARSERS[name](parser)


class PlainParser(MoldauParser):
    """Knows no functions but those with a syntax of their own, and reads operators as Spark does.

    sqlglot has BETWEEN, IN and LIKE before comparisons, `=` behind `<`, and `||` behind `+`.
    """

    FUNCTIONS = {}  # noqa: RUF012 - as sqlglot declares it
    FUNCTION_PARSERS = {  # noqa: RUF012
        **{name: _PARSERS[name] for name in ("CAST", "TRY_CAST")},
        "EXTRACT": lambda parser: parser.parse_extract(),
        **{name: _plain_or(name) for name in _OWN_SYNTAX},
    }
    UNARY_PARSERS = {  # noqa: RUF012
        TokenType.DASH: MoldauParser.UNARY_PARSERS[TokenType.DASH],
        TokenType.PLUS: lambda parser: parser.parse_plus(),
    }

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:  # noqa: FBT001, FBT002
        """Return a condition: NOT, or a value with at most one predicate behind it."""
        del parse_is
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        this = self._parse_comparison()
        return None if this is None else self._parse_predicate(this)

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """Return a value: comparisons are on one level, from left to right."""
        this = this or self._parse_bitwise()
        while self._match_set(_COMPARISONS):
            kind = _COMPARISONS[self._prev.token_type]
            this = self.expression(kind(this=this, expression=self._parse_bitwise()))
        return this

    def _parse_predicate(self, this: exp.Expr) -> exp.Expr | None:
        if self._match(TokenType.IS):
            return self._parse_what_it_is(this)
        index = self._index
        negate = self._match(TokenType.NOT)
        if self._match_set(_PREDICATES):
            found = self.RANGE_PARSERS[self._prev.token_type](self, this)
            return self._negate_range(found) if negate else found
        self._retreat(index)
        return this

    def _parse_what_it_is(self, this: exp.Expr) -> exp.Expr:
        negate = bool(self._match(TokenType.NOT))
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negate else exp.NullSafeNEQ
            return self.expression(kind(this=this, expression=self._parse_comparison()))
        if self._match(TokenType.NULL):
            return self.expression(exp.Is(this=this, expression=exp.Null(), negate=negate))
        if not self._match_set((TokenType.TRUE, TokenType.FALSE)):
            self.raise_error("Expected NULL, TRUE, FALSE or DISTINCT FROM")
        truth = exp.Boolean(this=self._prev.token_type is TokenType.TRUE)
        return self.expression(exp.Is(this=this, expression=truth, negate=negate))

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:  # noqa: FBT001, FBT002
        """Return a sum, or texts that are joined, from left to right."""
        this = self._parse_factor(parse_mod=parse_mod)
        while self._match_set(_TERMS):
            kind = _TERMS[self._prev.token_type]
            other = self._parse_factor(parse_mod=parse_mod)
            this = self.expression(kind(this=this, expression=other))
        return this

    def parse_plus(self) -> exp.Expr:
        """Return a value with `+` before it; sqlglot leaves that out.

        In Spark, `ORDER BY +2` is no place in the result, and `+i` has a name of its own.
        """
        return exp.Anonymous(this="+", expressions=[self._parse_unary()])

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
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # As in the dialect: sqlglot is large, and some texts find what its authors have not.
        raise GoesToSpark(f"it is not understood here: {error}") from None
    if any(each.token_type is TokenType.PIPE_GT for each in tokens):
        # sqlglot makes clauses of it, and `|> WHERE` would see other columns.
        raise GoesToSpark("a query that goes on behind |>")
    if len(found) != 1 or not isinstance(found[0], exp.Expr):
        raise GoesToSpark("it is not one query")
    return found[0]
