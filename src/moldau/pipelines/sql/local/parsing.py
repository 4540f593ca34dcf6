"""The text of a query, parsed so that nothing is assumed of its functions."""

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from moldau.pipelines.sql.language.dialect import Moldau, MoldauParser
from moldau.pipelines.sql.local.refusals import GoesToSpark


class PlainParser(MoldauParser):
    """Knows no functions but those with a syntax of their own."""

    FUNCTIONS = {}  # noqa: RUF012 - as sqlglot declares it


class PlainMoldau(Moldau):
    """The language of queries, in which a function is its name and its arguments.

    sqlglot knows many functions, and takes some for others, whose results are nearly the same.
    """

    Parser = PlainParser


def parse(text: str) -> exp.Expression:
    """Return what a query's text says; `GoesToSpark` if it is not understood here."""
    dialect = PlainMoldau()
    try:
        tokens = dialect.tokenize(text)
        found = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except (SqlglotError, RecursionError) as error:
        words = str(error).splitlines()[0]
        raise GoesToSpark(f"it is not understood here: {words}") from None
    if len(found) != 1 or not isinstance(found[0], exp.Expression):
        raise GoesToSpark("it is not one query")
    return found[0]
