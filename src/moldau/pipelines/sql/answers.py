"""What a statement is answered with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from moldau.pipelines.sql.ports import Result, ResultColumn, ResultRow


@dataclass(frozen=True, slots=True)
class StatementMessage:
    """A line that says what was done."""

    text: str


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """What the session has set now: whoever keeps the session keeps this."""

    text: str
    settings: Mapping[str, str] = field(default_factory=dict)


StatementAnswer: TypeAlias = StatementMessage | SettingsChanged | Result


def listing(names: Mapping[str, str], rows: Iterable[ResultRow]) -> Result:
    """Return an answer of the server's own: columns with types, and rows."""
    columns = tuple(ResultColumn(name, kind) for name, kind in names.items())
    return Result(columns, iter([list(rows)]), "server")
