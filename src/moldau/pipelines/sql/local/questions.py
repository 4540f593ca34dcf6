"""The local engine as the server asks it: questions that end, and stateless ones that do not."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

import pyarrow as pa

from moldau.client.sync_consumer import Consumer
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot
from moldau.pipelines.sql.language.queries import AsOfTime, Pseudo, QueryNames, TableUse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.local.answering import READ, LocalEngine
from moldau.pipelines.sql.local.inference import infer_relation
from moldau.pipelines.sql.local.pushing import check_stateless, push
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.types import from_arrow
from moldau.pipelines.sql.ports import DeclinedError, Result, ResultColumn, ResultRow
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.sql.result_rows import rows_of
from moldau.pipelines.sql.session import AUTO_OFFSET_RESET, Session

ROWS_MAX: Final = 1000
"""Of one batch of an answer."""


class _LocalNames(QueryNames):
    """What the engine calls things: AS OF is back in its place, rowtime is a column of its own."""

    def table(self, use: TableUse) -> str:
        """Return a table's name, as it was."""
        name = super().table(use)
        if use.as_of is None:
            return name
        kind = "TIMESTAMP" if isinstance(use.as_of, AsOfTime) else "VERSION"
        return f"{name} {kind} AS OF '{use.as_of}'"

    def rowtime(self, use: TableUse | None) -> str:
        """Return the column with the row's time, which every relation has here."""
        del use
        return Pseudo.ROWTIME.value


_NAMES: Final = _LocalNames()


class LocalQuestions:
    """DuckDB in this process, over what the client reads."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config = dict(config)
        self._engine = LocalEngine(config)

    @property
    def name(self) -> str:
        """Return what `EXPLAIN` calls it."""
        return "local"

    def select(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> Result:
        """Answer, or begin to."""
        text, catalog = select.query.render(_NAMES), _catalog(snapshot)
        try:
            if select.emit is not None:
                check_stateless(select, snapshot)
                schema, tables = push(self._config, text, catalog, session, asker)
                return Result(_columns(schema), _pushed(tables, select.limit), self.name)
            answer = self._engine.answer(text, catalog, asker=asker, session=session)
        except GoesToSpark as refusal:
            raise DeclinedError(refusal.reason) from None
        found = answer.rows
        batches = (rows_of(each) for each in found.to_batches(max_chunksize=ROWS_MAX))
        return Result(_columns(found.schema), batches, self.name, answer.left_out)

    def explain(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> str:
        """Return how it would answer."""
        del asker
        text, catalog = select.query.render(_NAMES), _catalog(snapshot)
        if select.emit is not None:
            try:
                check_stateless(select, snapshot)
            except GoesToSpark as refusal:
                raise DeclinedError(refusal.reason) from None
        found = self._engine.explain(text, catalog, session=session)
        if not found.is_local:
            raise DeclinedError(found.reason)
        if select.emit is not None:
            starting = session.get(AUTO_OFFSET_RESET)
            return f"DuckDB in the server: records as they come, from {starting} on, one by one"
        return f"DuckDB in the server: {found.reason}"

    def infer(self, name: str) -> Relation | None:
        """Return a topic that nobody has declared as a stream."""
        with Consumer(config=self._config | READ) as consumer:
            return infer_relation(consumer, name)


def _catalog(snapshot: CatalogSnapshot) -> Mapping[str, Relation]:
    return {each.name: each for each in snapshot.relations()}


def _columns(schema: pa.Schema) -> tuple[ResultColumn, ...]:
    return tuple(ResultColumn(each.name, str(from_arrow(each.type))) for each in schema)


def _pushed(tables: Generator[pa.Table], limit: int | None) -> Iterator[Sequence[ResultRow]]:
    left = limit
    with closing(tables):
        for table in tables:
            for batch in table.slice(0, left).to_batches(max_chunksize=ROWS_MAX):
                yield rows_of(batch)
            if left is not None and (left := left - min(left, len(table))) == 0:
                return
