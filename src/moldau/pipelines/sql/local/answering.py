"""Questions that end: answered here if they are small and plain, and left to Spark if not."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

from moldau.client.admin import Admin
from moldau.client.sync_consumer import Consumer
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.local.database import open_database
from moldau.pipelines.sql.local.inference import infer_relation
from moldau.pipelines.sql.local.loading import Loader
from moldau.pipelines.sql.local.parsing import parse
from moldau.pipelines.sql.local.records import QuestionLimits, Reading, read_records
from moldau.pipelines.sql.local.refusals import GoesToSpark, NoColumnError
from moldau.pipelines.sql.local.scopes import FromSource
from moldau.pipelines.sql.local.selects import DuckQuery, Queries
from moldau.pipelines.sql.local.types import arrow_type
from moldau.pipelines.sql.local.wanted import WantedRelation
from moldau.pipelines.sql.relations import Relation, records_left_out
from moldau.pipelines.sql.session import Session, read_undeclared
from moldau.pipelines.sql.topic_spans import OffsetSpan, assign_topic, check_compaction, find_spans

READ: Final = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "none",
    "max.partition.fetch.bytes": 8 << 20,
}


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question's rows, and who has answered."""

    rows: pa.Table
    note: str
    left_out: tuple[str, ...] = ()
    """Of each topic some of whose records did not decode, that they are left out."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Who would answer a question, and why."""

    is_local: bool
    reason: str
    sql: str = ""
    """What the engine here would be asked."""


class LocalEngine:
    """Answers SELECTs over topics without Spark.

    A query is Spark's SQL. `catalog` has what its names stand for, any other name is a topic's;
    `as_of` says which of them are seen as they were, if the query does not say it itself.
    """

    def __init__(self, config: Mapping[str, object], limits: QuestionLimits | None = None) -> None:
        self._config = dict(config)
        self._limits = limits or QuestionLimits()

    def answer(
        self,
        text: str,
        catalog: Mapping[str, Relation],
        as_of: Mapping[str, AsOf] | None = None,
        asker: Asker | None = None,
        session: Session | None = None,
    ) -> QuestionAnswer:
        """Return the rows of a query; `GoesToSpark` if they are not found here.

        A session's settings say how topics are read that are not declared.

        The asker hears how many offsets were read, and of how many; if it is cancelled, this is a
        `CancelledError` soon.
        """
        with Consumer(config=self._config | READ) as consumer:
            question = Question(self._config, consumer, catalog, as_of or {}, session)
            query = question.translate(text)
            reading = Reading(self._limits, asker)
            spans = question.find_spans(reading)
            left_out = []
            with open_database(self._limits.memory_bytes_max, asker) as database:
                for wanted in question.wanted:
                    loader = Loader(wanted)
                    records = read_records(consumer, spans[wanted.table], loader.columns, reading)
                    loader.load(database, records)
                    if loader.left_out:
                        topic = wanted.relation.topic
                        left_out.append(records_left_out(loader.left_out, f"of topic {topic} "))
                rows = database.sql(query.text).to_arrow_table()
        note = f"answered here, from {reading.total:,} records"
        return QuestionAnswer(as_spark(rows, query), note, tuple(left_out))

    def explain(
        self,
        text: str,
        catalog: Mapping[str, Relation],
        as_of: Mapping[str, AsOf] | None = None,
        session: Session | None = None,
    ) -> Explanation:
        """Return who would answer a query; nothing is read but samples of unknown topics."""
        with Consumer(config=self._config | READ) as consumer:
            question = Question(self._config, consumer, catalog, as_of or {}, session)
            reading = Reading(self._limits)
            try:
                query = question.translate(text)
                question.find_spans(reading)
            except GoesToSpark as refusal:
                return Explanation(is_local=False, reason=refusal.reason)
        reason = f"small and plain: {reading.total:,} records"
        return Explanation(is_local=True, reason=reason, sql=query.text)


class Question:
    """One query: what it reads, and what it is in the engine's SQL."""

    def __init__(
        self,
        config: Mapping[str, object],
        consumer: Consumer,
        catalog: Mapping[str, Relation],
        as_of: Mapping[str, AsOf],
        session: Session | None = None,
    ) -> None:
        self._config = config
        self._session = session or Session()
        self._consumer = consumer
        self._as_of = {name.lower(): each for name, each in as_of.items()}
        self._catalog = {name.lower(): relation for name, relation in catalog.items()}
        self._wanted: dict[tuple[str, str], WantedRelation] = {}
        self._now = datetime.now(UTC)

    @property
    def wanted(self) -> list[WantedRelation]:
        """The relations, each as it is asked for."""
        return list(self._wanted.values())

    def translate(self, text: str) -> DuckQuery:
        """Return the engine's query."""
        try:
            return Queries(self._source, self._now).translate(parse(text))
        except NoColumnError as error:
            guesses = dict.fromkeys(each.guess for each in self.wanted)
            raise NoColumnError(f"{error}{''.join(guesses)}") from None

    def _source(self, name: str, written: AsOf | None, alias: str) -> FromSource:
        as_of = written or self._as_of.get(name.lower())
        key = name.lower(), repr(as_of)
        if key not in self._wanted:
            known = self._catalog.get(name.lower())
            table = f"r{len(self._wanted)}"
            relation = self._infer(name) if known is None else known
            self._wanted[key] = WantedRelation(relation, as_of, table, is_guessed=known is None)
        return self._wanted[key].source(alias)

    def _infer(self, name: str) -> Relation:
        return read_undeclared(infer_relation(self._consumer, name), self._session)

    def find_spans(self, reading: Reading) -> dict[str, list[OffsetSpan]]:
        """Return what to read for each relation; `GoesToSpark` if it is too much."""
        spans = {}
        for each in self.wanted:
            topic = each.relation.topic
            assign_topic(self._consumer, topic)
            found = spans[each.table] = find_spans(self._consumer, topic, each.as_of)
            reading.expect(topic, found)
            if each.as_of is not None and each.is_table:
                self._check_compaction(topic, each.as_of, found)
        return spans

    def _check_compaction(self, topic: str, as_of: AsOf, spans: list[OffsetSpan]) -> None:
        now_ms = int(self._now.timestamp() * 1000)
        with Admin(config=self._config) as admin:
            check_compaction(admin, self._consumer, topic, as_of, spans, now_ms)


def as_spark(rows: pa.Table, query: DuckQuery) -> pa.Table:
    """Return a result with the names and types that Spark gives it."""
    arrays = [
        column.cast(arrow_type(its_type))
        for column, its_type in zip(rows.columns, query.types, strict=True)
    ]
    fields = [
        pa.field(name, arrow_type(its_type))
        for name, its_type in zip(query.names, query.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
