"""Spark as one who answers: what is large, what never ends, and what nobody else can do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.connector.options import PREFIX
from moldau.pipelines.decoding.batches import DecodeError
from moldau.pipelines.decoding.decode_counts import read_batch_counts
from moldau.pipelines.session import get_session
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot
from moldau.pipelines.sql.language.queries import SelectQuery
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.ports import Result, ResultRow
from moldau.pipelines.sql.relations import Relation, guessed, records_left_out
from moldau.pipelines.sql.session import AUTO_OFFSET_RESET, Session, read_undeclared
from moldau.pipelines.sql.spark.arrow_rows import shown_columns
from moldau.pipelines.sql.spark.batch_runs import run_batch
from moldau.pipelines.sql.spark.bounded import plan_bounded
from moldau.pipelines.sql.spark.plan_lines import describe_plan
from moldau.pipelines.sql.spark.planning import Planned, QueryStart, plan_query
from moldau.pipelines.sql.spark.pushing import PushedRows
from moldau.pipelines.sql.spark.results import grouping_of
from moldau.pipelines.sql.spark.running import UnresolvedError
from moldau.pipelines.sql.spark.sides import CHOSEN, Find, find_sides
from moldau.pipelines.sql.spark.spark_start import starting_spark
from moldau.pipelines.sql.spark.topic_places import latest_now
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.declared import Emit, Mode
from moldau.pipelines.streams.emitting import choose_emit
from moldau.pipelines.streams.outputs import explain
from moldau.pipelines.streams.sources import ClusterOptions
from moldau.pipelines.streams.tables import VALUE, Table, column


class SparkEngine:
    """Answers by Spark: batches without EMIT, streams with it."""

    def __init__(
        self,
        service: str,
        bootstrap: str,
        *,
        master: str | None = None,
        configs: Mapping[str, str] | None = None,
        infer: Find | None = None,
        is_quiet: bool = True,
    ) -> None:
        self._service = service
        self._bootstrap = bootstrap
        self._master = master
        self._configs = dict(configs or {})
        self._is_quiet = is_quiet
        self._infer: Find = infer or (lambda _name: None)
        client = {name: text for name, text in self._configs.items() if name.startswith(PREFIX)}
        self._cluster = ClusterOptions(bootstrap, client)

    @property
    def name(self) -> str:
        """Return what `EXPLAIN` calls it."""
        return "spark"

    def select(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> Result:
        """Begin to answer."""
        with starting_spark(asker):
            spark = self._spark
        if select.emit is None:
            with _saying_guesses(select.query, snapshot), asker.working("Spark plans the question"):
                find = self._find(snapshot, session)
                rows = plan_bounded(spark, self._cluster, select.query, find)
            columns, shown = shown_columns(rows)
            guesses = _guesses(select.query, snapshot)
            notes: list[str] = []
            batches = self._run(shown, asker, guesses, notes)
            return Result(columns, batches, self.name, notes)
        with _saying_guesses(select.query, snapshot), asker.working("Spark plans the question"):
            rows, mode = self._plan_stream(select, snapshot, session)
        columns, shown = shown_columns(rows)
        return Result(columns, PushedRows(shown, mode, select.limit, asker), self.name)

    def explain(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> str:
        """Return how it would answer."""
        with starting_spark(asker):
            spark = self._spark
        if select.emit is None:
            find = self._find(snapshot, session)
            sides = find_sides(select.query, find)
            topics = ", ".join(dict.fromkeys(side.relation.topic for side in sides))
            plan_bounded(spark, self._cluster, select.query, find)
            return f"Spark reads {topics or 'nothing'}, up to now or AS OF, as a batch"
        rows, mode = self._plan_stream(select, snapshot, session)
        return describe_plan(explain(rows), mode)

    def _run(
        self, rows: DataFrame, asker: Asker, guesses: str, notes: list[str]
    ) -> Iterator[list[ResultRow]]:
        batches = run_batch(self._spark, rows, asker)
        try:
            first = next(batches, None)
        except DecodeError as error:
            raise DecodeError(f"{error}{guesses}") from error
        for topic, count in sorted(read_batch_counts(rows).items()):
            notes.append(records_left_out(count, f"of topic {topic} "))
        if first is not None:
            yield first
            yield from batches

    @property
    def _spark(self) -> SparkSession:
        configs = {k: v for k, v in self._configs.items() if not k.startswith(PREFIX)}
        return get_session(self._service, self._master, configs, is_quiet=self._is_quiet)

    def _find(self, snapshot: CatalogSnapshot, session: Session) -> Find:
        def find(name: str) -> Relation | None:
            declared = snapshot.find(name)
            if declared is not None:
                return declared
            guess = self._infer(name)
            return None if guess is None else read_undeclared(guess, session)

        return find

    def _plan_stream(
        self, select: Select, snapshot: CatalogSnapshot, session: Session
    ) -> tuple[DataFrame, Mode]:
        app = App(self._service, self._bootstrap, master=self._master, configs=self._configs)
        find = self._find(snapshot, session)
        start = self._start(select.query, find, session)
        planned = plan_query(app, select.query, find, start, select.emit)
        rows = _as_rows(planned)
        emit: Emit | None = None if select.emit is None else select.emit.value
        return rows, choose_emit(explain(rows), emit)[1]

    def _start(self, query: SelectQuery, find: Find, session: Session) -> QueryStart:
        if session.get(AUTO_OFFSET_RESET) != "latest":
            return QueryStart()
        topics = {side.relation.topic for side in find_sides(query, find)}
        return QueryStart("latest", latest_now(self._cluster, sorted(topics)))


@contextmanager
def _saying_guesses(query: SelectQuery, snapshot: CatalogSnapshot) -> Iterator[None]:
    """Have an error about a column say which columns nobody has declared."""
    try:
        yield
    except UnresolvedError as error:
        raise UnresolvedError(f"{error}{_guesses(query, snapshot)}") from error


def _guesses(query: SelectQuery, snapshot: CatalogSnapshot) -> str:
    names = dict.fromkeys(use.name for use in query.tables)
    return "".join(guessed(name) for name in names if snapshot.find(name) is None)


def _as_rows(planned: Planned) -> DataFrame:
    """Return a table's changes as rows: of one that is deleted, only the key is there."""
    if not isinstance(planned.rows, Table):
        return _only_having(planned.rows, planned)
    keys = planned.rows.key.names
    return planned.rows.changed_rows().select(
        *(
            column(name) if name in keys else column(VALUE)[name].alias(name)
            for name in planned.names
        )
    )


def _only_having(rows: DataFrame, planned: Planned) -> DataFrame:
    """Return groups as rows: of one for which HAVING does not hold, only the key is there."""
    if CHOSEN not in rows.columns or planned.chosen is None:
        return rows
    keys = map(planned.chosen.expression, grouping_of(planned.chosen.select))
    kept = {name for name in keys if name is not None}
    # Two columns may have one name here: each is known by its place.
    places = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
    is_chosen = column(places.columns[rows.columns.index(CHOSEN)])
    return places.select(
        *(
            (value if name in kept else F.when(is_chosen, value)).alias(name)
            for name, value in zip(rows.columns, map(column, places.columns), strict=True)
            if name != CHOSEN
        )
    )
