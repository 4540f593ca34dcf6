"""The text of a SELECT with GROUP BY: what it aggregates, and what it makes of that.

The aggregates are taken out of the text, and columns put in their places: what is around them
stays the user's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.lexing import Shape, Token, split
from moldau.pipelines.sql.spark.sides import HIDDEN
from moldau.pipelines.sql.spark.texts import Parts
from moldau.pipelines.streams.aggregate_types import FUNCTIONS

_THERE: Final = "of a table's groups there are count, sum, avg, min and max"
_ASIDE: Final = ("FILTER", "OVER", "WITHIN")


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate, as it is written."""

    function: str
    argument: str | None
    """None for `count(*)`."""


@dataclass(slots=True)
class GroupedTexts:
    """A SELECT whose aggregates are columns."""

    items: list[str] = field(default_factory=list)
    """What is selected, without its names."""
    having: str | None = None
    calls: list[AggregateCall] = field(default_factory=list)

    def column(self, call: AggregateCall) -> str:
        """Return the column that stands for an aggregate; equal ones are one."""
        if call not in self.calls:
            self.calls.append(call)
        return call_column(self.calls.index(call))


def call_column(place: int) -> str:
    """Return the name of the column with an aggregate."""
    return f"{HIDDEN}a{place}"


def take_out_aggregates(parts: Parts, select: exp.Select, grouped: Sequence[str]) -> GroupedTexts:
    """Take the aggregates out of a SELECT; `grouped` are the columns that it groups by itself."""
    found = GroupedTexts()
    aliases: dict[str, str] = {}
    items = list(_items(parts.chosen))
    if len(items) != len(select.expressions):
        raise PipelineError(f"{parts.chosen}: it cannot be taken apart; name each column by itself")
    for text, node in zip(items, select.expressions, strict=True):
        bare = _without_alias(text) if isinstance(node, exp.Alias) else text
        found.items.append(_replaced(found, bare, {}))
        if isinstance(node, exp.Alias) and node.alias.lower() not in grouped:
            aliases[node.alias.lower()] = found.items[-1]
    having = _having(parts.behind)
    if having is not None:
        found.having = _replaced(found, having, aliases)
    return found


def _items(chosen: str) -> Iterator[str]:
    (tokens,) = split(chosen)
    start = tokens[0].end
    for token in tokens:
        if token.depth == 0 and token.text == ",":
            yield chosen[start : token.start].strip()
            start = token.end
    yield chosen[start:].strip()


def _without_alias(item: str) -> str:
    (tokens,) = split(item)
    last = tokens[-1]
    before = tokens[-2]
    return item[: (before if before.word == "AS" else last).start].rstrip()


def _having(behind: str) -> str | None:
    statements = split(behind)
    tokens = statements[0] if statements else []
    start = next((each for each in tokens if each.depth == 0 and each.word == "HAVING"), None)
    return None if start is None else behind[start.end :].strip()


def _replaced(found: GroupedTexts, text: str, aliases: Mapping[str, str]) -> str:
    """Return a text with columns for aggregates, and what they are called for their names."""
    (tokens,) = split(text)
    parts, position, index = [], 0, 0
    while index < len(tokens):
        token = tokens[index]
        before = tokens[index - 1].text if index else ""
        behind = tokens[index + 1].text if index + 1 < len(tokens) else ""
        new = None
        if token.word.lower() in FUNCTIONS and behind == "(" and before != ".":
            end = _closing(tokens, index + 1)
            new = found.column(_call(text, tokens[index : end + 1], tokens[end + 1 : end + 2]))
            index = end
        elif _is_name(token) and "." not in (before, behind) and behind != "(":
            alias = aliases.get(token.value.lower())
            new = None if alias is None else f"({alias})"
        if new is not None:
            parts += [text[position : token.start], new]
            position = tokens[index].end
        index += 1
    return "".join([*parts, text[position:]])


def _is_name(token: Token) -> bool:
    return token.shape in (Shape.WORD, Shape.QUOTED)


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = tokens[opening].depth
    return next(
        index
        for index in range(opening + 1, len(tokens))
        if tokens[index].text == ")" and tokens[index].depth == depth
    )


def _call(text: str, tokens: Sequence[Token], behind: Sequence[Token]) -> AggregateCall:
    written = text[tokens[0].start : tokens[-1].end]
    inner = text[tokens[1].end : tokens[-1].start].strip()
    is_several = any(
        each.text == "," and each.depth == tokens[1].depth + 1 for each in tokens[2:-1]
    )
    is_aside = bool(behind) and behind[0].word in _ASIDE
    if is_several or is_aside or tokens[2].word in ("DISTINCT", "ALL"):
        shown = f"{written} {behind[0].text}" if is_aside else written
        raise PipelineError(f"{shown}: {_THERE}, of one expression each")
    return AggregateCall(tokens[0].word.lower(), None if inner == "*" else inner)


def check_functions(select: exp.Select) -> None:
    """Refuse aggregates from which a row cannot be taken back."""
    known = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
    having = select.args.get("having")
    for node in [*select.expressions, *([having] if having is not None else [])]:
        for call in node.find_all(exp.AggFunc):
            if not isinstance(call, known):
                shown = call.sql(dialect="spark", normalize_functions="lower")
                raise PipelineError(
                    f"{shown}: {_THERE}, from which a row that changes can be taken back; "
                    "aggregate the stream that the table comes of"
                )
