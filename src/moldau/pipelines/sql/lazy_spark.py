"""Spark when something needs it, and not before: it is large, slow to start, and may be missing."""

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from moldau.pipelines.spark_version import SparkVersionError, check_pyspark
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import (
    CatalogSnapshot,
    Definition,
    PersistentQuery,
)
from moldau.pipelines.sql.language.statements import CreateAs, InsertSelect, Select
from moldau.pipelines.sql.ports import (
    DeclinedError,
    Engine,
    QueryPlan,
    Result,
    Runner,
    RunState,
    RunStatus,
)
from moldau.pipelines.sql.session import Session

Made = TypeVar("Made")
STARTING: Final = "Spark is starting; that takes a moment ..."


class Once(Generic[Made]):
    """Makes something when it is first wanted; `SparkVersionError` if there is no Spark."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._made: Made | None = None

    @property
    def found(self) -> Made | None:
        """What was made, if it was."""
        return self._made

    def get(self) -> Made:
        """Return it."""
        with self._making:
            if self._made is None:
                check_pyspark()
                self._made = self._make()
            return self._made


class LazyEngine:
    """Answers by Spark, which is started for the first question that nobody else takes."""

    def __init__(self, engine: Once[Engine]) -> None:
        self._engine = engine

    @property
    def name(self) -> str:
        """Return what `EXPLAIN` calls it."""
        return "spark"

    def select(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> Result:
        """Begin to answer."""
        return self._get().select(select, snapshot, session, asker)

    def explain(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> str:
        """Return how it would answer."""
        return self._get().explain(select, snapshot, session, asker)

    def _get(self) -> Engine:
        try:
            return self._engine.get()
        except SparkVersionError as error:
            # The reasons of those who were asked before belong to it.
            raise DeclinedError(str(error)) from None


class LazyRunner:
    """Runs queries on Spark, which is started for the first of them."""

    def __init__(self, runner: Once[Runner], say: Callable[[str], None] = lambda _: None) -> None:
        self._runner = runner
        self._say = say
        self._missing: dict[str, str] = {}
        """Why queries do not run that nobody can."""

    def plan(
        self,
        statement: CreateAs | InsertSelect,
        snapshot: CatalogSnapshot,
        session: Session,
        asker: Asker,
    ) -> QueryPlan:
        """Understand a query without running it."""
        return self._runner.get().plan(statement, snapshot, session, asker)

    def start(self, query: PersistentQuery, snapshot: CatalogSnapshot) -> None:
        """Have it run."""
        is_first = self._runner.found is None
        try:
            runner = self._runner.get()
        except SparkVersionError as error:
            self._missing[query.id] = str(error)
            return
        if is_first:
            # A client that plans a query hears it; of one that goes on, only the log tells.
            self._say(STARTING)
        runner.start(query, snapshot)

    def stop(self, query_id: str) -> None:
        """Return when it runs no more."""
        if self._missing.pop(query_id, None) is None and self._runner.found is not None:
            self._runner.found.stop(query_id)

    def delete_checkpoint(self, query: PersistentQuery) -> None:
        """Forget how far it has come."""
        self._runner.get().delete_checkpoint(query)

    def delete_letters(self, definition: Definition) -> None:
        """Forget how far a relation's dead letters have come."""
        try:
            self._runner.get().delete_letters(definition)
        except SparkVersionError:
            return  # nothing has ever run

    def status(self, query_id: str) -> RunStatus:
        """Tell how a query is."""
        if (reason := self._missing.get(query_id)) is not None:
            return RunStatus(RunState.FAILED, None, reason)
        return self._runner.get().status(query_id)

    def close(self) -> None:
        """Stop all."""
        if self._runner.found is not None:
            self._runner.found.close()
