"""A SQL file as an app: its queries that run for ever, by the names of what they make."""

from pathlib import Path

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import (
    CreateAs,
    CreateSource,
    Drop,
    InsertSelect,
    PauseQuery,
    ResumeQuery,
    Set,
    Statement,
    Unset,
    relation_of,
)
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.sql.session import AUTO_OFFSET_RESET
from moldau.pipelines.sql.spark.planning import EARLIEST, QueryStart
from moldau.pipelines.sql.spark.sinks import declare, plan_sink
from moldau.pipelines.streams.app import App


def load_sql_app(file: str, name: str | None = None) -> App:
    """Return an app with a query for each CREATE ... AS SELECT and INSERT ... SELECT of a file.

    What only asks, such as SELECT and SHOW, is for a server, and passed by.
    """
    app = App(name or Path(file).stem)
    text = Path(file).read_text()
    declared = _Declared(app)
    for statement in parse(text):
        try:
            declared.take(statement)
        except PipelineError as error:
            raise PipelineError(f"{file}:{statement.line}: {error}") from error
    return app


class _Declared:
    """What the statements of a file have declared so far."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._relations: dict[str, Relation] = {}
        self._start = EARLIEST
        self._inserts: dict[str, int] = {}

    def find(self, name: str) -> Relation:
        relation = self._relations.get(name.lower())
        if relation is None:
            close = close_matches(name, [each.name for each in self._relations.values()])
            way_out = ": declare it with CREATE STREAM or CREATE TABLE, before this"
            raise PipelineError(f"there is no stream or table {name}{close or way_out}")
        return relation

    def take(self, statement: Statement) -> None:
        match statement:
            case CreateSource():
                self._add(relation_of(statement))
            case CreateAs():
                sink = plan_sink(self._app, statement, self.find, self._start)
                self._add(sink.relation)
                declare(self._app, sink, statement.name)
            case InsertSelect():
                sink = plan_sink(self._app, statement, self.find, self._start)
                # One of several gets a number: its checkpoint has to stay its own.
                count = self._inserts[sink.relation.name] = (
                    self._inserts.get(sink.relation.name, 0) + 1
                )
                declare(self._app, sink, f"insert-{sink.relation.name}-{count}")
            case Set() if statement.name.lower() == AUTO_OFFSET_RESET:
                self._start = QueryStart(statement.value.lower())
            case Unset() if statement.name.lower() == AUTO_OFFSET_RESET:
                self._start = EARLIEST
            case Drop():
                raise PipelineError("DROP: an app is what its file declares; leave both out")
            case PauseQuery() | ResumeQuery():
                word = "PAUSE" if isinstance(statement, PauseQuery) else "RESUME"
                raise PipelineError(f"{word}: it is for the queries of a server; leave it out")
            case _:
                pass

    def _add(self, relation: Relation) -> None:
        if relation.name.lower() in self._relations:
            raise PipelineError(f"{relation.name} is there already: choose another name")
        self._relations[relation.name.lower()] = relation
