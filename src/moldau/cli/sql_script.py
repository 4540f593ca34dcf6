"""A text of statements, parsed once: what it changes, and what of it does not end by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import (
    CreateAs,
    CreateSource,
    Drop,
    InsertSelect,
    PauseQuery,
    Print,
    ResumeQuery,
    Select,
    Statement,
    Terminate,
)


@dataclass(frozen=True, slots=True)
class Script:
    """What is to be executed."""

    text: str
    statements: Sequence[Statement] | None
    """None if it was not understood: the engine that executes it says why."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse a text."""
        try:
            return cls(text, parse(text))
        except SqlError:
            return cls(text, None)

    @property
    def only_asks(self) -> bool:
        """Whether it changes nothing that a server owns."""
        changing = (CreateSource, CreateAs, InsertSelect, Drop, Terminate, PauseQuery, ResumeQuery)
        return not any(isinstance(each, changing) for each in self.statements or ())

    @property
    def live(self) -> frozenset[int]:
        """The numbers of those statements that do not end by themselves."""
        return frozenset(
            number
            for number, each in enumerate(self.statements or (), 1)
            if isinstance(each, Print) or (isinstance(each, Select) and each.emit is not None)
        )
