"""A query's text with another FROM, and without its WHERE: what is around them stays as it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.pipelines.sql.language.lexing import Token, split
from moldau.pipelines.sql.spark.sides import HIDDEN, Side

JOINED: Final = f"{HIDDEN}joined"
"""The view with all sides of a join."""
_BEHIND_FROM: Final = (
    "LATERAL", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """The text of a SELECT, taken apart."""

    chosen: str
    """From SELECT up to FROM."""
    where: str | None
    laterals: str
    """What is between FROM and WHERE beside the sides themselves."""
    behind: str
    """GROUP BY and so on."""

    def over(self, source: str, *added: str) -> str:
        """Return the SELECT with another FROM, further columns, and without WHERE."""
        columns = "".join(f", {each}" for each in added)
        return f"{self.chosen}{columns} FROM {source} {self.laterals} {self.behind}".rstrip()

    def filtered(self, source: str) -> str:
        """Return the SELECT with another FROM."""
        where = "" if self.where is None else f"WHERE {self.where}"
        return f"{self.chosen} FROM {source} {self.laterals} {where} {self.behind}".rstrip()


def take_apart(text: str) -> Parts:
    """Take the text of one SELECT apart."""
    (tokens,) = split(text)
    outer = [index for index, token in enumerate(tokens) if token.depth == 0]
    begin = next(index for index in outer if is_from(tokens, index))
    ends = [index for index in outer if index > begin and tokens[index].word in _BEHIND_FROM]
    where = next((index for index in ends if tokens[index].word == "WHERE"), None)
    plain = [index for index in ends if tokens[index].word != "LATERAL"]
    from_end = tokens[ends[0]].start if ends else len(text)
    laterals_end = tokens[plain[0]].start if plain else len(text)
    behind = next((index for index in plain if index != where), None)
    behind_start = len(text) if behind is None else tokens[behind].start
    return Parts(
        text[: tokens[begin].start].rstrip(),
        None if where is None else text[tokens[where].end : behind_start].strip(),
        text[from_end:laterals_end].strip(),
        text[behind_start:].strip(),
    )


def is_from(tokens: Sequence[Token], index: int) -> bool:
    """Return whether this is the FROM of a SELECT."""
    # `a IS DISTINCT FROM b` is a comparison.
    return tokens[index].word == "FROM" and tokens[index - 1].word != "DISTINCT"


def joined_source(sides: Sequence[Side]) -> str:
    """Return a FROM with the columns of each side, qualified by its name.

    The view has a struct for each side. Generated columns have a qualifier of their own, so that
    Spark finds `o.id`, and `id` where only one side has it, as in a join.
    """
    return " ".join([JOINED, *(side_columns(side, side.column_names) for side in sides)])


def side_columns(side: Side, names: Iterable[str]) -> str:
    """Return a part of FROM with columns of a side's struct."""
    listed = ", ".join(map(quote_always, names))
    return f"LATERAL VIEW inline(array({side.view})) {quote_always(side.called)} AS {listed}"


def quote_always(name: str) -> str:
    """Return a name in backquotes, whatever it means otherwise."""
    return f"`{name.replace('`', '``')}`"


def as_template(text: str, views: Sequence[str]) -> str:
    """Return a text for `spark.sql` with DataFrames: `{name}` stands for each view."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    (tokens,) = split(escaped)
    parts, position = [], 0
    for token in tokens:
        if token.text in views:
            parts += [escaped[position : token.start], "{", token.text, "}"]
            position = token.end
    return "".join([*parts, escaped[position:]])
