"""Runs persistent queries on Spark, each supervised by itself: one that fails stops no other."""

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moldau.pipelines.errors import PipelineError, SessionLostError
from moldau.pipelines.session import find_loss
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import (
    CatalogSnapshot,
    Definition,
    PersistentQuery,
    folded,
)
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateAs, InsertSelect
from moldau.pipelines.sql.ports import QueryPlan, RunState, RunStatus
from moldau.pipelines.sql.relations import RelationKind
from moldau.pipelines.sql.session import AUTO_OFFSET_RESET, Session
from moldau.pipelines.sql.spark.inputs import open_stream, open_table
from moldau.pipelines.sql.spark.plan_lines import describe_plan
from moldau.pipelines.sql.spark.planning import EARLIEST, QueryStart
from moldau.pipelines.sql.spark.sinks import declare, narrowed, plan_sink
from moldau.pipelines.sql.spark.spark_start import starting_spark
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.checkpoints import FOLDER, Checkpoints
from moldau.pipelines.streams.dead_letter_headers import dead_letters_topic
from moldau.pipelines.streams.declared import Query
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.pipelines.supervision.failures import Failure, failure_of
from moldau.pipelines.supervision.progress import QueryStatus
from moldau.pipelines.supervision.restarts import SPARK
from moldau.pipelines.supervision.supervisor import Supervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PLANNED: Final = "planned"
"""A query's name while it is only looked at."""
_STATES: Final = {
    "starting": RunState.STARTING,
    "running": RunState.RUNNING,
    "waiting": RunState.WAITING,
    "failed": RunState.FAILED,
    # By itself a query does not end: somebody else has stopped it.
    "stopped": RunState.FAILED,
}


class SparkRunner:
    """Runs the queries of one SQL service, all in one Spark session.

    Checkpoints are in BASE/CREATED/SERVICE/QUERY, as those of an app that has the service's name:
    where a catalog was deleted by hand, ids begin with 1 again, and belong to other queries.
    """

    def __init__(
        self,
        service: str,
        bootstrap: str,
        *,
        checkpoints: str = FOLDER,
        master: str | None = None,
        configs: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda _line: None,
        is_quiet: bool = True,
    ) -> None:
        self._say = say
        self._lost: set[SparkSession | int] = set()
        """Sessions that are lost, and the processes of their JVMs."""
        self._service = service
        self._bootstrap = bootstrap
        self._checkpoints = checkpoints.rstrip("/")
        self._master = master
        self._configs = dict(configs or {})
        self._options = RunOptions(is_quiet=is_quiet)
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._letters: dict[Definition, _Letters] = {}

    def plan(
        self,
        statement: CreateAs | InsertSelect,
        snapshot: CatalogSnapshot,
        session: Session,
        asker: Asker,
    ) -> QueryPlan:
        """Understand a query without running it."""
        app = self._app()
        with starting_spark(asker):
            _ = app.spark
        # Its first query also has Spark start Python, once for each topic.
        with asker.working(f"Spark plans {statement.name}"):
            sink = plan_sink(app, statement, snapshot.find, _start(session.values))
            query = declare(app, sink, PLANNED)
        relation = sink.relation
        return QueryPlan(
            relation.columns,
            describe_plan(query.plan, query.mode),
            relation.event_time,
            relation.watermark,
            relation.event_time_unit,
            query.plan.topics,
            query.plan.state,
        )

    def start(self, query: PersistentQuery, snapshot: CatalogSnapshot) -> None:
        """Have it run, from its checkpoint if it has one."""
        run = _Run(query.id, lambda: self._declare(query, snapshot), self._tell_loss)
        with self._lock:
            assert query.id not in self._runs, f"{query.id} runs already"
            self._runs[query.id] = run
            for definition in _with_letters(query, snapshot):
                if definition not in self._letters:
                    self._letters[definition] = self._run_letters(definition, query.settings)
                self._letters[definition].readers.add(query.id)
        run.start()

    def stop(self, query_id: str) -> None:
        """Return when it runs no more."""
        with self._lock:
            run = self._runs.pop(query_id, None)
            unread = self._take_unread(query_id)
        # Together: what the one has left out, the other is about to write.
        stopping = [each for each in (run, *unread) if each is not None]
        for each in stopping:
            each.ask_to_stop()
        for each in stopping:
            each.wait()

    def _take_unread(self, query_id: str) -> "list[_Run]":
        """Return the runs of dead letters that no query needs any more."""
        for letters in self._letters.values():
            letters.readers.discard(query_id)
        unread = [definition for definition, each in self._letters.items() if not each.readers]
        return [self._letters.pop(definition).run for definition in unread]

    def delete_checkpoint(self, query: PersistentQuery) -> None:
        """Forget how far it has come."""
        self._delete(self._base_of(query), query.id)

    def delete_letters(self, definition: Definition) -> None:
        """Forget how far a relation's dead letters have come."""
        self._delete(self._base_of(definition), self._letters_name(definition))

    def _delete(self, base: str, name: str) -> None:
        checkpoints = Checkpoints(self._service, base)
        checkpoints.delete(name)
        for folder in (checkpoints.local_folder, checkpoints.local_folder.parent):
            with suppress(OSError):
                folder.rmdir()  # others of the same moment may be there

    def status(self, query_id: str) -> RunStatus:
        """Tell how a query is."""
        with self._lock:
            run = self._runs.get(query_id)
            letters = [
                (definition, each.run.status)
                for definition, each in self._letters.items()
                if query_id in each.readers
            ]
        if run is None:
            return RunStatus(RunState.STARTING)
        status = run.status
        for definition, each in letters:
            if status.last_error is None and each.last_error is not None:
                words = f"dead letters of {definition.relation.name}: {each.last_error}"
                status = replace(status, last_error=words)
        return status

    def close(self) -> None:
        """Stop all, together."""
        with self._lock:
            runs = [*self._runs.values(), *(each.run for each in self._letters.values())]
            self._runs.clear()
            self._letters.clear()
        for run in runs:
            run.ask_to_stop()
        for run in runs:
            run.wait()

    def _declare(self, query: PersistentQuery, snapshot: CatalogSnapshot) -> tuple[App, Query]:
        (statement,) = parse(query.statement)
        if not isinstance(statement, CreateAs | InsertSelect):
            raise PipelineError(f"query {query.id}: {statement.text!r} does not run for ever")
        app = self._app(self._base_of(query))
        sink = plan_sink(app, statement, snapshot.find, _start(query.settings))
        relation = snapshot.find(query.sink)
        if relation is not None:
            sink = narrowed(sink, relation)
        # Another service of the cluster may have a query of the same id.
        return app, declare(app, sink, query.id, group=f"moldau-{self._service}.{query.id}")

    def _tell_loss(self, signs: "Set[SparkSession | int]", line: str) -> None:
        """Say once that a session is lost, however many queries have run or started in it.

        A query knows it by the session, the JVM's process, or both.
        """
        with self._lock:
            is_known = not signs.isdisjoint(self._lost)
            if not is_known and signs:
                self._lost.clear()  # nothing is heard of older ones any more
            self._lost |= signs
        if not is_known:
            self._say(f"Spark: {line}")

    def _run_letters(self, definition: Definition, settings: Mapping[str, str]) -> "_Letters":
        name = self._letters_name(definition)
        run = _Run(
            name, lambda: self._declare_letters(definition, _start(settings)), self._tell_loss
        )
        run.start()
        return _Letters(run)

    def _declare_letters(self, definition: Definition, start: QueryStart) -> tuple[App, Query]:
        """Return the query of the records of a relation that do not decode.

        It is one for all queries that read it, so that a record is a letter once.
        """
        app = self._app(self._base_of(definition))
        if definition.relation.kind is RelationKind.TABLE:
            open_table(app, definition.relation)
        else:
            open_stream(app, definition.relation, starting=start.at)
        (letters,) = app.queries
        name = self._letters_name(definition)
        return app, replace(letters, name=name)

    def _letters_name(self, definition: Definition) -> str:
        return f"{dead_letters_topic(self._service)}.{definition.relation.topic}"

    def _base_of(self, made: PersistentQuery | Definition) -> str:
        return f"{self._checkpoints}/{made.created_ms}"

    def _app(self, checkpoints: str | None = None) -> App:
        with run_with(self._options):
            return App(
                self._service,
                self._bootstrap,
                checkpoints=checkpoints,
                master=self._master,
                configs=self._configs,
            )


def _with_letters(query: PersistentQuery, snapshot: CatalogSnapshot) -> list[Definition]:
    """Return the definitions of what a query reads whose undecodable records are kept."""
    found = (snapshot.definitions.get(folded(name)) for name in dict.fromkeys(query.sources))
    return [each for each in found if each is not None and each.relation.on_error == "dead-letter"]


def _start(settings: Mapping[str, str]) -> QueryStart:
    """Return where a new query begins: a table made of half a topic would be a surprise."""
    at = settings.get(AUTO_OFFSET_RESET)
    return EARLIEST if at is None else QueryStart(at)


class _Run:
    """One query, and the thread that watches it."""

    def __init__(
        self,
        query_id: str,
        declare_query: Callable[[], tuple[App, Query]],
        tell_loss: "Callable[[Set[SparkSession | int], str], None]" = lambda *_: None,
    ) -> None:
        self._declare = declare_query
        self._tell_loss = tell_loss
        self._declared: tuple[App, Query] | None = None
        self._lost_jvm: int | None = None
        self._supervisor = Supervisor([query_id], self, self)
        self._thread = threading.Thread(
            target=self._watch, name=f"moldau-sql-{query_id}", daemon=True
        )
        self._status = RunStatus(RunState.STARTING)
        self._last_error: str | None = None

    @property
    def status(self) -> RunStatus:
        """How it was a second ago."""
        return self._status

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Have it end soon."""
        self._supervisor.ask_to_stop()

    def wait(self) -> None:
        """Return when it has ended."""
        self._thread.join()

    def _watch(self) -> None:
        try:
            self._supervisor.run()
        except Exception as error:  # noqa: BLE001 - nobody else would ever tell
            self._status = RunStatus(RunState.FAILED, None, failure_of(error).line)
        finally:
            if self._declared is not None:
                # What was read last is committed to the group now.
                self._declared[0].stop()

    # What the supervisor runs.

    def start_query(self, name: str) -> "StreamingQuery":  # noqa: ARG002 - there is one
        """Start the query."""
        if self._declared is None:
            self._declared = self._declare()
        app, query = self._declared
        return app.start_query(query)

    def find_loss(self, error: Exception | None = None) -> Exception | None:
        """Return why the session is gone, None while it is there."""
        loss = find_loss(self._session, error)
        self._lost_jvm = loss.jvm_pid if isinstance(loss, SessionLostError) else None
        return loss

    def reopen(self) -> None:
        """Let go of the session that is lost: the query is declared in another when it starts."""
        if self._declared is not None:
            self._declared[0].stop()
        self._declared = None

    @property
    def _session(self) -> "SparkSession | None":
        return None if self._declared is None else self._declared[0].spark

    # The supervisor's audience.

    def show(self, statuses: Sequence[QueryStatus]) -> None:
        """Keep how the query is."""
        (status,) = statuses
        lag = None if status.last is None else status.last.lag
        self._status = RunStatus(
            _STATES[status.state],
            lag,
            status.reason or self._last_error,
            status.skipped,
            status.dead_lettered,
        )

    def report(self, query: str, line: str) -> None:
        """Pass on that the session is lost; leave what concerns the query to `explain`."""
        if query == SPARK:
            signs = {each for each in (self._session, self._lost_jvm) if each is not None}
            self._tell_loss(signs, line)

    def explain(self, failure: Failure) -> None:
        """Keep why it has failed, also when it runs again."""
        self._last_error = failure.line


@dataclass(slots=True)
class _Letters:
    """The run that writes the dead letters of a relation, and the queries that read that."""

    run: _Run
    readers: set[str] = field(default_factory=set)
