"""HAVING as a column: a row for which it does not hold any more is to be told of, not left out."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.dialect import parse_expression
from moldau.pipelines.sql.language.lexing import Token, split
from moldau.pipelines.sql.language.rewriting import Rewritten, TextEdit
from moldau.pipelines.sql.language.tails import split_at_commas
from moldau.pipelines.sql.spark.sides import CHOSEN
from moldau.pipelines.sql.spark.texts import is_from

_BEHIND: Final = ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT")


def having_as_column(text: str, select: exp.Select) -> str:
    """Return the text of a SELECT without its HAVING, which is its last column instead.

    In HAVING a name is that of a column of the result, if there is one; among the columns
    themselves it would be one of the input: so these names become what they stand for.
    """
    (tokens,) = split(text)
    outer = [index for index, token in enumerate(tokens) if token.depth == 0]
    begin = next(index for index in outer if tokens[index].word == "SELECT")
    origin = next((index for index in outer if index > begin and is_from(tokens, index)), None)
    if origin is None:
        raise PipelineError("HAVING: with EMIT CHANGES, SELECT stands before FROM")
    having = next(index for index in outer if tokens[index].word == "HAVING")
    behind = [index for index in outer if index > having and tokens[index].word in _BEHIND]
    end = behind[0] if behind else len(tokens)
    condition = text[tokens[having].end : tokens[end - 1].end].strip()
    names = _aliases(text, tokens[begin + 1 : origin], select.expressions)
    column = f", coalesce(({_without_aliases(condition, names)}), false) AS {CHOSEN}"
    before = tokens[origin - 1].end
    edits = [
        TextEdit(before, before, column),
        TextEdit(tokens[having].start, tokens[end - 1].end, ""),
    ]
    return Rewritten(text, 0, len(text), edits).text.rstrip()


def _aliases(text: str, tokens: Sequence[Token], items: Sequence[exp.Expr]) -> Mapping[str, str]:
    """Return what stands behind each name that the SELECT gives to an expression."""
    found: dict[str, str] = {}
    for part, item in zip(split_at_commas(tokens), items, strict=True):
        if not isinstance(item, exp.Alias):
            continue
        is_said = part[-2].word == "AS"
        expression = text[part[0].start : part[-3 if is_said else -2].end]
        found[item.alias.lower()] = f"({expression})"
    return found


def _without_aliases(condition: str, names: Mapping[str, str]) -> str:
    edits = []
    for column in parse_expression(condition).find_all(exp.Column):
        name = names.get(column.name.lower())
        # What is added up is of the input; and of a function that only Spark knows, Spark decides.
        is_inside = column.find_ancestor(exp.AggFunc, exp.Anonymous) is not None
        if name is not None and not column.table and not is_inside:
            start, end = column.this.meta["start"], column.this.meta["end"] + 1
            edits.append(TextEdit(start, end, name))
    return Rewritten(condition, 0, len(condition), edits).text
