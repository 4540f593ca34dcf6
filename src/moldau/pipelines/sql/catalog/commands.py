"""What can be asked of the catalog; statements become these when their columns are known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from moldau.pipelines.sql.relations import Relation, RelationKind


@dataclass(frozen=True, slots=True)
class Declare:
    """CREATE STREAM or TABLE over a topic."""

    relation: Relation
    statement: str
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateAsCommand:
    """CREATE STREAM or TABLE ... AS SELECT.

    If it is there and `if_not_exists`, a terminated query of the same statement goes on.
    """

    relation: Relation
    statement: str
    sources: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class InsertSelectCommand:
    """INSERT INTO ... SELECT; a terminated query of the same statement goes on."""

    sink: str
    statement: str
    sources: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropCommand:
    """DROP STREAM or TABLE."""

    kind: RelationKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class TerminateCommand:
    """TERMINATE; all queries without an id."""

    id: str | None = None


@dataclass(frozen=True, slots=True)
class PauseCommand:
    """PAUSE; all queries that run without an id."""

    id: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeCommand:
    """RESUME; all queries that are paused without an id, by its id also a terminated one."""

    id: str | None = None


CatalogCommand: TypeAlias = (
    Declare
    | CreateAsCommand
    | InsertSelectCommand
    | DropCommand
    | TerminateCommand
    | PauseCommand
    | ResumeCommand
)
