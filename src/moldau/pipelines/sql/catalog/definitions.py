"""What the server remembers: relations and queries, as values and as the records that keep them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

from moldau.pipelines.sql.relations import Column, Relation, RelationKind

RELATION: Final = "relation/"
QUERY: Final = "query/"
SEQUENCE: Final = "sequence"

DefinitionValue: TypeAlias = Mapping[str, Any]
CatalogChange: TypeAlias = tuple[str, DefinitionValue | None]
"""A record's key, and its value; None takes it away."""


class Desired(StrEnum):
    """What a query is meant to do; how it does is the runner's to say."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """It is to go on later, and what it reads and writes stays."""
    TERMINATED = "TERMINATED"


class Verb(StrEnum):
    """What made a query, as its id begins."""

    CREATE_STREAM = "CSAS"
    CREATE_TABLE = "CTAS"
    INSERT = "INSERT"


@dataclass(frozen=True, slots=True)
class Definition:
    """A relation, and how it came about."""

    relation: Relation
    statement: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class PersistentQuery:
    """A query that runs for ever, and writes what it finds to a relation."""

    id: str
    verb: Verb
    statement: str
    sink: str
    sources: tuple[str, ...]
    created_ms: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of the session that made it."""
    desired: Desired = Desired.RUNNING

    @property
    def is_running(self) -> bool:
        """Whether it is meant to run."""
        return self.desired is Desired.RUNNING

    @property
    def is_terminated(self) -> bool:
        """Whether nothing is kept for it any more but its checkpoint."""
        return self.desired is Desired.TERMINATED

    def reads(self, name: str) -> bool:
        """Whether a relation is one of its sources."""
        return folded(name) in map(folded, self.sources)

    def writes(self, name: str) -> bool:
        """Whether a relation is its sink."""
        return folded(name) == folded(self.sink)

    @property
    def makes_its_sink(self) -> bool:
        """Whether its sink is there because of it."""
        return self.verb is not Verb.INSERT


def folded(name: str) -> str:
    """Return a name as names are compared: without case."""
    return name.casefold()


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """All that was defined at one moment; it does not change."""

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    """By folded name."""
    queries: Mapping[str, PersistentQuery] = field(default_factory=dict)
    """By id."""
    sequence: int = 0
    """How many queries there were: an id is used once, as its checkpoint may be there still."""

    def find(self, name: str) -> Relation | None:
        """Return a relation, or None."""
        found = self.definitions.get(folded(name))
        return None if found is None else found.relation

    def relations(self, kind: RelationKind | None = None) -> tuple[Relation, ...]:
        """Return all relations, or all of a kind, by name."""
        found = (self.definitions[key].relation for key in sorted(self.definitions))
        return tuple(each for each in found if kind is None or each.kind is kind)

    def readers(self, name: str) -> tuple[PersistentQuery, ...]:
        """Return the queries that read a relation."""
        return _by_age(each for each in self.queries.values() if each.reads(name))

    def writers(self, name: str) -> tuple[PersistentQuery, ...]:
        """Return the queries that write to a relation."""
        return _by_age(each for each in self.queries.values() if each.writes(name))


def _by_age(queries: Iterable[PersistentQuery]) -> tuple[PersistentQuery, ...]:
    return tuple(sorted(queries, key=lambda each: int(each.id.rpartition("_")[2])))


def relation_change(definition: Definition) -> CatalogChange:
    """Return the record of a relation that is there."""
    return RELATION + folded(definition.relation.name), asdict(definition)


def query_change(query: PersistentQuery) -> CatalogChange:
    """Return the record of a query that is there."""
    # `asdict` copies mappings as what they are, which JSON does not take of a proxy.
    return QUERY + query.id, asdict(replace(query, settings=dict(query.settings)))


def read_definition(value: DefinitionValue) -> Definition:
    """Return what `relation_change` has written."""
    relation = value["relation"]
    columns = tuple(Column(**each) for each in relation["columns"])
    made = Relation(**{**relation, "kind": RelationKind(relation["kind"]), "columns": columns})
    return Definition(made, value["statement"], value["created_ms"])


def read_query(value: DefinitionValue) -> PersistentQuery:
    """Return what `query_change` has written."""
    fields = cast("dict[str, Any]", dict(value))
    fields["verb"] = Verb(fields["verb"])
    fields["desired"] = Desired(fields["desired"])
    fields["sources"] = tuple(fields["sources"])
    fields["settings"] = dict(fields["settings"])
    return PersistentQuery(**fields)
