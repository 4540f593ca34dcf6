"""The text of a query, parsed so that nothing is assumed of its functions."""

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from moldau.pipelines.sql.local.refusals import GoesToSpark


class PlainParser(SparkParser):
    """Knows no functions but those with a syntax of their own."""

    FUNCTIONS = {}  # noqa: RUF012 - as sqlglot declares it


class PlainSpark(Spark):
    """Spark's SQL in which a function is its name and its arguments.

    sqlglot knows many functions, and takes some for others, whose results are nearly the same.
    """

    class Tokenizer(Spark.Tokenizer):
        """Takes `'it''s'` for one text, as Spark 4 does."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it

    Parser = PlainParser


def parse(text: str) -> exp.Expression:
    """Return what a query's text says; `GoesToSpark` if it is not understood here."""
    dialect = PlainSpark()
    try:
        tokens = dialect.tokenize(text)
        for index, token in enumerate(tokens):
            # To sqlglot `GROUP BY window(...)` ends GROUP BY and begins `WINDOW w AS (...)`.
            if token.token_type is TokenType.WINDOW:
                behind = [each.token_type for each in tokens[index + 2 : index + 4]]
                if behind != [TokenType.ALIAS, TokenType.L_PAREN]:
                    token.token_type = TokenType.VAR
        found = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except (SqlglotError, RecursionError) as error:
        words = str(error).splitlines()[0]
        raise GoesToSpark(f"it is not understood here: {words}") from None
    if len(found) != 1 or not isinstance(found[0], exp.Expression):
        raise GoesToSpark("it is not one query")
    return found[0]
