"""Takes statements and yields answers: whoever runs inside a shell or behind HTTP is the same."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql import choosing, showing
from moldau.pipelines.sql.answers import SettingsChanged, StatementAnswer, StatementMessage, listing
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog import commands
from moldau.pipelines.sql.catalog.catalog import (
    Catalog,
    CatalogDecision,
    CatalogEffect,
    CatalogError,
    DeleteCheckpoint,
    DeleteLetters,
    DeleteTopic,
    EnsureTopic,
    StartQuery,
    StopQuery,
)
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot
from moldau.pipelines.sql.insert_values import records_of
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import (
    CreateAs,
    CreateSource,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    PauseQuery,
    Print,
    ResumeQuery,
    Select,
    Set,
    Show,
    Shown,
    Statement,
    Terminate,
    Unset,
    relation_of,
)
from moldau.pipelines.sql.ports import (
    ChangeLog,
    Engine,
    Printer,
    Runner,
    RunState,
    RunStatus,
    StatementCluster,
    ViewRows,
    Views,
)
from moldau.pipelines.sql.relations import FAIL, Relation, RelationKind
from moldau.pipelines.sql.replacing import check_queries
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.topic_spans import NoTopicError

OPENING_POLL_SECONDS: Final = 0.1
_CONTROLS: Final[Mapping[type[Statement], Callable[[str | None], commands.CatalogCommand]]] = {
    Terminate: commands.TerminateCommand,
    PauseQuery: commands.PauseCommand,
    ResumeQuery: commands.ResumeCommand,
}


@dataclass(frozen=True, slots=True)
class Ports:
    """Who does what the service decides."""

    cluster: StatementCluster
    runner: Runner
    views: Views
    printer: Printer
    engines: Sequence[Engine]
    """The first that takes a question answers it."""

    def close(self) -> None:
        """Stop what runs, and hang up."""
        self.runner.close()
        self.views.close()
        self.cluster.close()


class Service:
    """Executes statements, from many threads; what changes the catalog goes one after the other."""

    def __init__(
        self,
        catalog: Catalog,
        log: ChangeLog,
        ports: Ports,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        *,
        is_owner: bool = True,
    ) -> None:
        self._catalog = catalog
        self._snapshot = catalog.snapshot()
        self._log = log
        self._ports = ports
        self._now_ms = now_ms
        self._is_owner = is_owner
        self._changing = threading.Lock()
        self._opened = threading.Event()

    @property
    def snapshot(self) -> CatalogSnapshot:
        """Return what is defined now."""
        return self._snapshot

    @property
    def is_open(self) -> bool:
        """Whether this server runs the queries, and takes what changes the catalog."""
        return self._opened.is_set()

    def open(self, catalog: Catalog) -> None:
        """Run the queries and the views of a catalog that nobody else changes any more.

        Before, questions are answered by the catalog as it was, and changes wait.
        """
        self._catalog = catalog
        snapshot = self._snapshot = catalog.snapshot()
        self._ports.views.keep(snapshot.relations(RelationKind.TABLE))
        for query in snapshot.queries.values():
            if query.is_running:
                self._ports.runner.start(query, snapshot)
        self._opened.set()

    def execute(
        self, statement: Statement, session: Session, asker: Asker
    ) -> Iterator[StatementAnswer]:
        """Yield a statement's answers; whoever gets a result reads it before going on."""
        try:
            yield from self._execute(statement, session, asker)
        except NoTopicError as error:
            raise NoTopicError(error.name, self._close_to(error.name)) from None

    def _execute(
        self, statement: Statement, session: Session, asker: Asker
    ) -> Iterator[StatementAnswer]:
        match statement:
            case Select():
                engines = self._ports.engines
                yield choosing.select(engines, statement, self.snapshot, session, asker)
            case Print():
                yield self._ports.printer.print_topic(statement, session, asker)
            case Describe(name=name, extended=extended):
                yield from showing.describe(self.snapshot, name, self._status, extended=extended)
            case Show(what=what):
                yield self._show(what)
            case Explain(subject=subject):
                lines = self._explain(subject, session, asker)
                yield listing({"plan": "string"}, ((line,) for line in lines))
            case Set(name=name, value=value):
                changed = session.set(name, value)
                yield SettingsChanged(f"{name} is {changed.get(name)} now", changed.values)
            case Unset(name=name):
                changed = session.unset(name)
                yield SettingsChanged(f"{name} is {changed.get(name)} again", changed.values)
            case InsertValues():
                yield self._insert_values(statement)
            case _:
                yield StatementMessage(self._change(statement, session, asker))

    def view(self, table: Relation, key: object, start: str | None, until: str | None) -> ViewRows:
        """Return what the view of a table has of a key."""
        return self._ports.views.get(table, key, start, until)

    def _status(self, query_id: str) -> RunStatus:
        if not self._opened.is_set():
            return RunStatus(RunState.STARTING if self._is_owner else RunState.RESTING)
        return self._ports.runner.status(query_id)

    def _show(self, what: Shown) -> StatementAnswer:
        match what:
            case Shown.STREAMS:
                return showing.show_relations(self.snapshot, RelationKind.STREAM)
            case Shown.TABLES:
                return showing.show_relations(self.snapshot, RelationKind.TABLE)
            case Shown.TOPICS:
                return showing.show_topics(self.snapshot, self._ports.cluster.topics())
            case Shown.QUERIES:
                return showing.show_queries(self.snapshot, self._status)

    def _explain(self, subject: Statement | str, session: Session, asker: Asker) -> list[str]:
        match subject:
            case str():
                return self._explain_query(subject, asker)
            case Select():
                engines = self._ports.engines
                return [*choosing.explain(engines, subject, self.snapshot, session, asker)]
            case CreateAs() | InsertSelect():
                self._require_sources(subject)
                plan = self._ports.runner.plan(subject, self.snapshot, session, asker)
                return ["Engine: spark", *plan.text.splitlines()]
            case _:
                word = subject.text.split(maxsplit=1)[0].upper()
                raise CatalogError(f"{word} is done by the server: there is no plan to explain")

    def _explain_query(self, query_id: str, asker: Asker) -> list[str]:
        snapshot = self.snapshot
        found = {each.lower(): query for each, query in snapshot.queries.items()}
        query = found.get(query_id.lower())
        if query is None:
            close = close_matches(query_id, snapshot.queries)
            raise CatalogError(f"there is no query {query_id}{close}")
        (statement,) = parse(query.statement)
        assert isinstance(statement, CreateAs | InsertSelect)
        plan = self._ports.runner.plan(statement, snapshot, Session(query.settings), asker)
        return [
            f"Query: {query.id} ({query.desired})",
            f"Statement: {showing.in_one_line(query.statement)}",
            *plan.text.splitlines(),
        ]

    def _insert_values(self, statement: InsertValues) -> StatementMessage:
        relation = self.snapshot.find(statement.name)
        if relation is None:
            known = [each.name for each in self.snapshot.relations()]
            close = close_matches(statement.name, known)
            raise CatalogError(f"there is no stream or table {statement.name}{close}")
        records = records_of(statement, relation)
        self._ports.cluster.write(relation.topic, records)
        count = len(records)
        return StatementMessage(
            f"{count} row{'s' if count != 1 else ''} inserted into {relation.name}"
        )

    # What changes the catalog.

    def _change(self, statement: Statement, session: Session, asker: Asker) -> str:
        if not self._is_owner:
            raise CatalogError("this server owns nothing, and only answers questions")
        while not self._opened.wait(OPENING_POLL_SECONDS):
            asker.check()
        with self._changing:
            command = self._command(statement, session, asker)
            decision = self._catalog.decide(command, self._now_ms())
            if isinstance(statement, InsertSelect):
                # What cannot be run is not recorded.
                self._require_sources(statement)
                self._ports.runner.plan(statement, self.snapshot, session, asker)
            if isinstance(command, commands.Declare | commands.CreateAsCommand):
                made_by = statement if isinstance(statement, CreateAs) else None
                if command.or_replace:
                    plan = partial(self._ports.runner.plan, asker=asker)
                    check_queries(self.snapshot, command.relation, made_by, plan)
            for effect in decision.before:
                self._perform(effect)
            if decision.records:
                self._log.append(decision.records)
                for key, value in decision.records:
                    self._catalog.replay(key, value)
                # Whoever asks sees all of a change, or nothing of it.
                self._snapshot = self._catalog.snapshot()
            return decision.message + self._do_after(decision)

    def _command(
        self, statement: Statement, session: Session, asker: Asker
    ) -> commands.CatalogCommand:
        match statement:
            case CreateSource():
                relation = relation_of(statement)
                return commands.Declare(
                    relation, statement.text, statement.if_not_exists, statement.or_replace
                )
            case CreateAs():
                return commands.CreateAsCommand(
                    self._sink_of(statement, session, asker),
                    statement.text,
                    tuple(each.name for each in statement.query.tables),
                    dict(session.values),
                    statement.if_not_exists,
                    statement.or_replace,
                )
            case InsertSelect():
                sources = tuple(each.name for each in statement.query.tables)
                return commands.InsertSelectCommand(
                    statement.name, statement.text, sources, dict(session.values)
                )
            case Drop():
                return commands.DropCommand(
                    statement.kind, statement.name, statement.if_exists, statement.delete_topic
                )
            case Terminate() | PauseQuery() | ResumeQuery():
                return _CONTROLS[type(statement)](statement.query_id)
            case _:
                raise AssertionError(f"{type(statement).__name__} changes nothing")

    def _require_sources(self, statement: CreateAs | InsertSelect) -> None:
        """Refuse what is not declared before Spark is asked, which may have to be started."""
        for use in statement.query.tables:
            if self.snapshot.find(use.name) is not None:
                continue
            what = f"there is no stream or table {use.name}"
            if close := close_matches(use.name, [each.name for each in self.snapshot.relations()]):
                raise CatalogError(what + close)
            if any(each.name == use.name for each in self._ports.cluster.topics()):
                what = f"{use.name} is a topic, and no stream or table yet"
            raise CatalogError(f"{what}: declare it with CREATE STREAM or CREATE TABLE")

    def _close_to(self, name: str) -> str:
        """Return which names of relations and topics are like one."""
        topics = [each.name for each in self._ports.cluster.topics()]
        return close_matches(name, [*(each.name for each in self.snapshot.relations()), *topics])

    def _sink_of(self, statement: CreateAs, session: Session, asker: Asker) -> Relation:
        found = self.snapshot.find(statement.name)
        if found is not None and not statement.or_replace:
            # It is refused, or left as it is: nobody needs to understand the query for that.
            return replace(found, kind=statement.kind)
        self._require_sources(statement)
        plan = self._ports.runner.plan(statement, self.snapshot, session, asker)
        said = statement.properties
        return Relation(
            statement.name,
            statement.kind,
            said.topic or statement.name,
            plan.columns,
            said.format or "json",
            plan.event_time,
            plan.watermark,
            said.partitions,
            plan.event_time_unit,
            said.on_error or FAIL,
        )

    def _do_after(self, decision: CatalogDecision) -> str:
        """Do what is decided and recorded, all of it; return what went wrong, to be told."""
        works: list[Callable[[], None]] = []
        if decision.records:
            # Before a topic goes, nobody follows it any more.
            tables = self.snapshot.relations(RelationKind.TABLE)
            works.append(partial(self._ports.views.keep, tables))
        works += [partial(self._perform, effect) for effect in decision.after]
        failures = []
        for work in works:
            try:
                work()
            except PipelineError as error:
                failures.append(str(error))
        return "".join(f"; but {each}" for each in failures)

    def _perform(self, effect: CatalogEffect) -> None:
        ports = self._ports
        match effect:
            case EnsureTopic(relation, may_create):
                ports.cluster.ensure_topic(relation, may_create=may_create)
            case StartQuery(query):
                ports.runner.start(query, self.snapshot)
            case StopQuery(query_id):
                ports.runner.stop(query_id)
            case DeleteCheckpoint(query):
                ports.runner.delete_checkpoint(query)
            case DeleteLetters(definition):
                ports.runner.delete_letters(definition)
            case DeleteTopic(name):
                ports.cluster.delete_topic(name)
