"""A parsed statement, read so that nothing in it is overlooked.

Translators hold a `ParsedNode`, and not sqlglot's own nodes: each argument that they take is noted.
At the end, whatever the statement says and no translator has taken is Spark's to do.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from moldau.pipelines.sql.local.refusals import GoesToSpark

MEANINGLESS: Final[dict[tuple[type[exp.Expr], str], str]] = {
    (exp.Identifier, "quoted"): "Spark finds a name in any case, with and without quotes",
    (exp.Div, "typed"): "sqlglot says it of the dialect, and not of the query",
    (exp.Div, "safe"): "sqlglot says it of the dialect, and not of the query",
    (exp.TryCast, "requires_string"): "sqlglot says it of the dialect, and not of the query",
    (exp.DataType, "nested"): "sqlglot says it of every type that has others inside",
}
"""What a statement's tree has and what changes no answer, each with the reason."""


class ParsedNode:
    """A node of a statement's tree; what is taken of it is noted."""

    __slots__ = ("_node", "_taken")

    def __init__(self, node: exp.Expr, taken: set[tuple[int, str]] | None = None) -> None:
        self._node = node
        # A node is known by its id: the tree keeps all of them alive.
        self._taken = set() if taken is None else taken

    @property
    def kind(self) -> type[exp.Expr]:
        """sqlglot's class for it."""
        return type(self._node)

    @property
    def parent(self) -> "ParsedNode | None":
        """The node that this is an argument of."""
        above = self._node.parent
        return None if above is None else ParsedNode(above, self._taken)

    @property
    def key(self) -> str:
        """What sqlglot calls its kind."""
        return self._node.key

    @property
    def words(self) -> str:
        """The node as it may have been written, for messages."""
        try:
            return self._node.sql(dialect="spark")
        except (SqlglotError, ValueError, TypeError, LookupError, AttributeError):
            # sqlglot cannot write all that it reads.
            return self.key

    def anew(self) -> "ParsedNode":
        """Return the same node for another reading of it, of which nothing is noted yet."""
        return ParsedNode(self._node)

    def find_all(self, kind: type[exp.Expr]) -> "Iterator[ParsedNode]":
        """Yield the nodes of a kind, this one among them."""
        for each in self._node.find_all(kind):
            yield ParsedNode(each, self._taken)

    # Arguments.

    def take(self, name: str) -> "ParsedNode | None":
        """Return an argument, None if it is not said."""
        value = self._take(name)
        if value is None or isinstance(value, exp.Expr):
            return None if value is None else ParsedNode(value, self._taken)
        raise self._strange(name)

    def get(self, name: str) -> "ParsedNode":
        """Return an argument that sqlglot always gives."""
        found = self.take(name)
        if found is None:
            raise self._strange(name)
        return found

    def take_list(self, name: str) -> "list[ParsedNode]":
        """Return an argument of several nodes."""
        values = self._take(name) or []
        if not isinstance(values, list) or not all(isinstance(each, exp.Expr) for each in values):
            raise self._strange(name)
        return [ParsedNode(each, self._taken) for each in values]

    def take_word(self, name: str) -> str:
        """Return an argument that is one of sqlglot's own words, nothing if it is not said."""
        value = self._take(name)
        if isinstance(value, Enum):
            return value.name
        if value is None or isinstance(value, str):
            return value or ""
        raise self._strange(name)

    def take_flag(self, name: str) -> bool | None:
        """Return an argument that is true or false, None if it is not said."""
        value = self._take(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._strange(name)

    def take_name(self) -> str:
        """Return what a name or a word is."""
        if self.kind not in (exp.Identifier, exp.Var):
            raise GoesToSpark(f"{self.words} in the place of a name")
        return self.take_word("this")

    def take_text(self) -> str | None:
        """Return a text in quotes, None if it is none."""
        is_text = self.kind is exp.Literal and self.take_flag("is_string")
        return self.take_word("this") if is_text else None

    def take_number(self) -> str | None:
        """Return a number as it is written, None if it is none."""
        is_number = self.kind is exp.Literal and not self.take_flag("is_string")
        return self.take_word("this") if is_number else None

    def take_whole(self) -> int | None:
        """Return a number that is whole and written without a sign, None if it is none."""
        digits = self.take_number()
        return int(digits) if digits is not None and digits.isdigit() else None

    def take_place(self) -> int | None:
        """Return the place of a column in the result, None if it is none: ORDER BY (2), or -2."""
        if self.kind is exp.Paren:
            return self.get("this").take_place()
        is_negative = self.kind is exp.Neg
        place = self.get("this").take_whole() if is_negative else self.take_whole()
        # A number that is no int is a value as any other.
        if place is None or place > 1 << 31:
            return None
        return -place if is_negative else place

    def take_all(self) -> None:
        """Take all arguments, and those of all nodes inside."""
        for node in self._node.walk():
            self._taken |= {(id(node), name) for name in node.args}

    def kind_of(self, name: str) -> type:
        """Return what an argument is, without taking it."""
        return type(self._node.args.get(name))

    def check(self) -> None:
        """Leave the statement to Spark if it says something that was not taken."""
        for each in self._node.walk():
            ParsedNode(each, self._taken).check_own()

    def check_own(self) -> None:
        """Leave the statement to Spark if this node says something that was not taken.

        A translator asks this before it looks for names: behind a PIVOT the columns are others.
        """
        for name, value in self._node.args.items():
            if not is_said(value) or (id(self._node), name) in self._taken:
                continue
            if (self.kind, name) not in MEANINGLESS:
                raise GoesToSpark(f"{name.strip('_').replace('_', ' ')} in {self.key}")

    def _take(self, name: str) -> Any:
        self._taken.add((id(self._node), name))
        return self._node.args.get(name)

    def _strange(self, name: str) -> GoesToSpark:
        return GoesToSpark(f"{name} in {self.words}")


def is_said(value: object) -> bool:
    """Whether an argument has a value; `False` is one: `UNION ALL` is `distinct=False`."""
    return value is not None and value != []
