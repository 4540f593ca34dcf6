"""The catalog: which relations and queries there are, decided without threads, clocks or brokers.

`decide` says what a command changes, and changes nothing; `replay` is the only thing that does. A
server appends the records to the catalog's topic and replays them when they are committed; after a
restart it replays the topic. `before` is done before the records are written, and may have been
done in vain; `after` when they are committed. What of `after` is lost in a crash does no harm: no
query runs any more, those that are to run are started again, and a checkpoint that is left over
belongs to an id that is never used again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.commands import (
    CatalogCommand,
    CreateAsCommand,
    Declare,
    DropCommand,
    InsertSelectCommand,
    PauseCommand,
    ResumeCommand,
    TerminateCommand,
)
from moldau.pipelines.sql.catalog.definitions import (
    QUERY,
    RELATION,
    SEQUENCE,
    CatalogChange,
    CatalogSnapshot,
    Definition,
    DefinitionValue,
    Desired,
    PersistentQuery,
    Verb,
    folded,
    query_change,
    read_definition,
    read_query,
    relation_change,
)
from moldau.pipelines.sql.catalog.replaced import ReplacedError, check_relation
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.relations import Relation, RelationKind

_CREATING: Final = re.compile(r"\bif\s+not\s+exists\b|(?<=^create)\s+or\s+replace\b", re.IGNORECASE)


class CatalogError(PipelineError):
    """A command that does not fit what is there."""


@dataclass(frozen=True, slots=True)
class EnsureTopic:
    """Have a relation's topic; if it is not there, create it, or say that it is missing."""

    relation: Relation
    may_create: bool


@dataclass(frozen=True, slots=True)
class StartQuery:
    """Have a query run."""

    query: PersistentQuery


@dataclass(frozen=True, slots=True)
class StopQuery:
    """Have a query run no more."""

    id: str


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint:
    """Forget how far a query has come, and its state."""

    query: PersistentQuery


@dataclass(frozen=True, slots=True)
class DeleteLetters:
    """Forget how far the dead letters of a relation have come; those that are written stay."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic with all that is in it."""

    name: str


CatalogEffect: TypeAlias = (
    EnsureTopic | StartQuery | StopQuery | DeleteCheckpoint | DeleteLetters | DeleteTopic
)


@dataclass(frozen=True, slots=True)
class CatalogDecision:
    """What a command comes to."""

    message: str
    records: tuple[CatalogChange, ...] = ()
    before: tuple[CatalogEffect, ...] = ()
    after: tuple[CatalogEffect, ...] = ()


class Catalog:
    """Everything that is defined."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition] = {}
        self._queries: dict[str, PersistentQuery] = {}
        self._sequence = 0

    def snapshot(self) -> CatalogSnapshot:
        """Return what is there now, for whoever looks at it while others go on."""
        return CatalogSnapshot(
            MappingProxyType(dict(self._definitions)),
            MappingProxyType(dict(self._queries)),
            self._sequence,
        )

    def replay(self, key: str, value: DefinitionValue | None) -> None:
        """Apply a record of the catalog's topic."""
        if key == SEQUENCE:
            self._sequence = value["last"] if value is not None else 0
        elif key.startswith(RELATION):
            name = key.removeprefix(RELATION)
            if value is None:
                self._definitions.pop(name, None)
            else:
                self._definitions[name] = read_definition(value)
        elif key.startswith(QUERY):
            if value is None:
                self._queries.pop(key.removeprefix(QUERY), None)
            else:
                query = read_query(value)
                self._queries[query.id] = query
        else:
            raise CatalogError(f"the catalog has a record {key!r}: a newer version has written it")

    def decide(self, command: CatalogCommand, now_ms: int) -> CatalogDecision:
        """Return what a command changes; `CatalogError` if it cannot be done."""
        match command:
            case Declare():
                return self._declare(command, now_ms)
            case CreateAsCommand():
                return self._create_as(command, now_ms)
            case InsertSelectCommand():
                return self._insert_select(command, now_ms)
            case DropCommand():
                return self._drop(command)
            case TerminateCommand() | PauseCommand() | ResumeCommand():
                return self._control(command)

    def _declare(self, command: Declare, now_ms: int) -> CatalogDecision:
        relation = command.relation
        if (found := self.snapshot().find(relation.name)) is not None:
            if command.or_replace:
                return self._replace(command)
            return _exists(found, relation, if_not_exists=command.if_not_exists)
        return CatalogDecision(
            f"{relation.kind.capitalize()} {relation.name} created",
            (relation_change(Definition(relation, command.statement, now_ms)),),
            # A misspelt name is likelier than a topic that is yet to come.
            before=(EnsureTopic(relation, may_create=relation.partitions is not None),),
        )

    def _create_as(self, command: CreateAsCommand, now_ms: int) -> CatalogDecision:
        relation = command.relation
        if (found := self.snapshot().find(relation.name)) is not None:
            if command.or_replace:
                return self._replace(command)
            decision = _exists(found, relation, if_not_exists=command.if_not_exists)
            query = self._find_terminated(found.name, command.statement)
            return decision if query is None else _resumed([query])
        is_table = relation.kind is RelationKind.TABLE
        query = self._make_query(
            Verb.CREATE_TABLE if is_table else Verb.CREATE_STREAM, relation.name, command, now_ms
        )
        return CatalogDecision(
            f"{relation.kind.capitalize()} {relation.name} created by query {query.id}",
            (
                relation_change(Definition(relation, command.statement, now_ms)),
                query_change(query),
                (SEQUENCE, {"last": self._sequence + 1}),
            ),
            before=(EnsureTopic(relation, may_create=True),),
            after=(StartQuery(query),),
        )

    def _insert_select(self, command: InsertSelectCommand, now_ms: int) -> CatalogDecision:
        sink = self._get(command.sink)
        if sink.kind is RelationKind.TABLE:
            raise CatalogError(
                f"{sink.name} is a table, and INSERT INTO ... SELECT writes to streams: "
                "use CREATE TABLE ... AS SELECT"
            )
        if (terminated := self._find_terminated(sink.name, command.statement)) is not None:
            return _resumed([terminated])
        if (paused := self._find_same(sink.name, command.statement, Desired.PAUSED)) is not None:
            raise CatalogError(
                f"query {paused.id} is this statement, and paused: RESUME {paused.id}"
            )
        query = self._make_query(Verb.INSERT, sink.name, command, now_ms)
        return CatalogDecision(
            f"Query {query.id} inserts into {sink.name}",
            (query_change(query), (SEQUENCE, {"last": self._sequence + 1})),
            after=(StartQuery(query),),
        )

    def _replace(self, command: Declare | CreateAsCommand) -> CatalogDecision:
        """Put another definition in place of one; its query, and those who use it, go on."""
        snapshot = self.snapshot()
        found = snapshot.definitions[folded(command.relation.name)]
        before, relation = found.relation, replace(command.relation, name=found.relation.name)
        writers = snapshot.writers(before.name)
        maker = next((each for each in writers if each.makes_its_sink), None)
        drop = f"DROP {before.kind} {before.name} first, and create it anew"
        if (maker is None) is isinstance(command, CreateAsCommand):
            made = "declared" if maker is None else f"made by query {maker.id}"
            raise CatalogError(f"OR REPLACE {before.name}: it is {made}, and stays that; {drop}")
        try:
            check_relation(before, relation)
        except ReplacedError as error:
            raise CatalogError(f"OR REPLACE {before.name}: {error}; {drop}") from error
        records = [relation_change(replace(found, relation=relation, statement=command.statement))]
        queries = {each.id: each for each in (*writers, *snapshot.readers(before.name))}
        running = [each.id for each in queries.values() if each.is_running]
        message = f"{before.kind.capitalize()} {before.name} replaced"
        if maker is not None and isinstance(command, CreateAsCommand):
            # One that was terminated goes on, as by the same statement again.
            desired = Desired.RUNNING if maker.is_terminated else maker.desired
            changed = replace(
                maker, statement=command.statement, sources=command.sources, desired=desired
            )
            queries[maker.id] = changed
            records.append(query_change(changed))
            how = (
                f"is {desired.lower()}" if not changed.is_running else "goes on from its checkpoint"
            )
            message += f"; query {maker.id} {how}"
        started = [each for each in queries.values() if each.is_running]
        return CatalogDecision(
            message,
            tuple(records),
            after=(*map(StopQuery, running), *map(StartQuery, started)),
        )

    def _make_query(
        self, verb: Verb, sink: str, command: CreateAsCommand | InsertSelectCommand, now_ms: int
    ) -> PersistentQuery:
        return PersistentQuery(
            f"{verb}_{sink.upper()}_{self._sequence + 1}",
            verb,
            command.statement,
            sink,
            command.sources,
            now_ms,
            command.settings,
        )

    def _drop(self, command: DropCommand) -> CatalogDecision:
        snapshot = self.snapshot()
        relation = snapshot.find(command.name)
        if relation is None and command.if_exists:
            return CatalogDecision(f"{command.kind.capitalize()} {command.name} is not there")
        relation = self._get(command.name)
        if relation.kind is not command.kind:
            raise CatalogError(
                f"{relation.name} is a {relation.kind.lower()}: "
                f"use DROP {relation.kind} {relation.name}"
            )
        writers = snapshot.writers(relation.name)
        busy = [each for each in snapshot.readers(relation.name) if not each.is_terminated]
        busy += [each for each in writers if not (each.is_terminated or each.makes_its_sink)]
        if busy:
            raise CatalogError(_in_use(relation.name, busy))
        if command.delete_topic:
            self._require_only_use(relation)
        topic = (DeleteTopic(relation.topic),) if command.delete_topic else ()
        records: list[CatalogChange] = [(RELATION + folded(relation.name), None)]
        effects: list[CatalogEffect] = []
        for query in writers:
            records.append((QUERY + query.id, None))
            effects += [StopQuery(query.id)] if query.is_running else []
            effects.append(DeleteCheckpoint(query))
        if relation.on_error == "dead-letter":
            effects.append(DeleteLetters(snapshot.definitions[folded(relation.name)]))
        message = f"{relation.kind.capitalize()} {relation.name} dropped"
        if writers:
            message += f", with {_listed(writers)}"
        if topic:
            message += f"; topic {relation.topic} deleted"
        return CatalogDecision(message, tuple(records), after=(*effects, *topic))

    def _require_only_use(self, relation: Relation) -> None:
        others = [
            each.name
            for each in self.snapshot().relations()
            if each.topic == relation.topic and each.name != relation.name
        ]
        if others:
            raise CatalogError(
                f"topic {relation.topic} is also read by {', '.join(others)}: drop "
                f"{'it' if len(others) == 1 else 'them'} first, or leave out DELETE TOPIC"
            )

    def _control(self, command: TerminateCommand | PauseCommand | ResumeCommand) -> CatalogDecision:
        match command:
            case TerminateCommand():
                return self._terminate(command)
            case PauseCommand():
                return self._pause(command)
            case ResumeCommand():
                return self._resume(command)

    def _terminate(self, command: TerminateCommand) -> CatalogDecision:
        ended = self._chosen(command.id, Desired.RUNNING, Desired.PAUSED)
        if not ended and command.id is not None:
            raise CatalogError(f"query {self._get_query(command.id).id} is terminated already")
        return _stopped(ended, Desired.TERMINATED, "terminated; checkpoints are kept")

    def _pause(self, command: PauseCommand) -> CatalogDecision:
        paused = self._chosen(command.id, Desired.RUNNING)
        if not paused and command.id is not None:
            query = self._get_query(command.id)
            raise CatalogError(f"query {query.id} is {query.desired.lower()} already")
        return _stopped(paused, Desired.PAUSED, "paused; RESUME goes on from the checkpoint")

    def _resume(self, command: ResumeCommand) -> CatalogDecision:
        if command.id is None:
            return _resumed(self._chosen(None, Desired.PAUSED))
        query = self._get_query(command.id)
        if query.is_running:
            raise CatalogError(f"query {query.id} is not paused; SHOW QUERIES tells how it is")
        missing = [each for each in query.sources if self.snapshot().find(each) is None]
        if missing:
            # Of a terminated query, what it reads may be dropped.
            raise CatalogError(f"query {query.id} reads {missing[0]}, which is not there any more")
        return _resumed([query])

    def _chosen(self, query_id: str | None, *desired: Desired) -> list[PersistentQuery]:
        """Return the queries that are meant to do one of these: one by its id, or all of them."""
        known = self._queries.values() if query_id is None else [self._get_query(query_id)]
        return [each for each in known if each.desired in desired]

    def _find_terminated(self, sink: str, statement: str) -> PersistentQuery | None:
        """Return the query that the same statement has made, if it was terminated."""
        return self._find_same(sink, statement, Desired.TERMINATED)

    def _find_same(self, sink: str, statement: str, desired: Desired) -> PersistentQuery | None:
        writers = self.snapshot().writers(sink)
        same = [each for each in writers if _plain(each.statement) == _plain(statement)]
        return next((each for each in same if each.desired is desired), None)

    def _get(self, name: str) -> Relation:
        if (found := self.snapshot().find(name)) is not None:
            return found
        known = [each.relation.name for each in self._definitions.values()]
        raise CatalogError(f"there is no stream or table {name}{close_matches(name, known)}")

    def _get_query(self, name: str) -> PersistentQuery:
        for query in self._queries.values():
            if folded(query.id) == folded(name):
                return query
        raise CatalogError(f"there is no query {name}{close_matches(name, self._queries)}")


def _exists(found: Relation, wanted: Relation, *, if_not_exists: bool) -> CatalogDecision:
    what = f"{found.name} is there already"
    if if_not_exists and found.kind is wanted.kind:
        return CatalogDecision(f"{found.kind.capitalize()} {what}")
    raise CatalogError(
        f"{found.kind.lower()} {what}: choose another name, or DROP {found.kind} {found.name} first"
    )


def _stopped(queries: Sequence[PersistentQuery], desired: Desired, words: str) -> CatalogDecision:
    stopped = [replace(each, desired=desired) for each in queries]
    message = f"{_listed(stopped, 'Query', 'Queries')} {words}"
    return CatalogDecision(
        message if stopped else "No query is running",
        tuple(map(query_change, stopped)),
        after=tuple(StopQuery(each.id) for each in queries if each.is_running),
    )


def _resumed(queries: Sequence[PersistentQuery]) -> CatalogDecision:
    resumed = [replace(each, desired=Desired.RUNNING) for each in queries]
    is_one = len(resumed) == 1
    words = "goes on from its checkpoint" if is_one else "go on from their checkpoints"
    return CatalogDecision(
        f"{_listed(resumed, 'Query', 'Queries')} {words}" if resumed else "No query is paused",
        tuple(map(query_change, resumed)),
        after=tuple(map(StartQuery, resumed)),
    )


def _plain(statement: str) -> str:
    """Return a statement as it is compared: the same file may be run again, after a touch."""
    return " ".join(_CREATING.sub(" ", statement).split())


def _in_use(name: str, queries: Iterable[PersistentQuery]) -> str:
    ways = [f"{each.id} {'writes' if each.writes(name) else 'reads'} it" for each in queries]
    ends = [f"TERMINATE {each.id}" for each in queries]
    return f"{name} is in use, {', '.join(ways)}: {'; '.join(ends)} first"


def _listed(queries: Iterable[PersistentQuery], one: str = "query", more: str = "queries") -> str:
    ids = [each.id for each in queries]
    return f"{one if len(ids) == 1 else more} {', '.join(ids)}"
