"""An app: streams and tables from topics, and queries that lead to others."""

import inspect
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, overload

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from moldau.kernel.durations import Duration
from moldau.pipelines.connector.options import PREFIX
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.session import find_loss, get_session
from moldau.pipelines.streams.aggregates import aggregate
from moldau.pipelines.streams.checkpoints import Checkpoints, check_name
from moldau.pipelines.streams.committing import Committer
from moldau.pipelines.streams.dead_letters import (
    find_dead_letter_sources,
    make_dead_letter_query,
)
from moldau.pipelines.streams.declared import ON_ERROR, Emit, OnError, Query, Source, Written
from moldau.pipelines.streams.emitting import GrowingStateWarning, choose_emit, describe_growth
from moldau.pipelines.streams.headers import HeaderColumns, header_column
from moldau.pipelines.streams.joins import join
from moldau.pipelines.streams.outputs import describe_written, encode, explain
from moldau.pipelines.streams.previewing import take_rows
from moldau.pipelines.streams.run_options import current_run_options
from moldau.pipelines.streams.sliding import aggregate_sliding
from moldau.pipelines.streams.sources import (
    ClusterOptions,
    check_format,
    check_metadata,
    find_epoch,
    load_rows,
    read_key,
    with_event_time,
)
from moldau.pipelines.streams.starting import (
    check_brokers,
    check_place,
    create_topics,
    start_stream,
)
from moldau.pipelines.streams.table_aggregates import AggregatedTable
from moldau.pipelines.streams.tables import Table, TopicTable
from moldau.pipelines.streams.time_records import time_columns, without_time_records
from moldau.pipelines.streams.waves import find_feeders

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class App:
    """Declares first, runs afterwards; its name and its queries' names lead to the checkpoints.

    `configs` are Spark's, for a session that is not there yet, and with `kafka.` before them the
    client's. Whoever runs the app's file may have other ideas of where things are
    (`run_options`).
    """

    def __init__(
        self,
        name: str,
        bootstrap: str = "localhost:9092",
        *,
        checkpoints: str | None = None,
        master: str | None = None,
        on_error: OnError = "fail",
        configs: Mapping[str, object] | None = None,
    ) -> None:
        run = current_run_options()
        texts = {key: str(value) for key, value in (configs or {}).items()}
        self.name = check_name("name", name)
        self.made_in = _file_of(inspect.currentframe())
        """The file that makes this app whenever it is run; None if a function has made it."""
        self.bootstrap = run.bootstrap or bootstrap
        self.checkpoints = Checkpoints(name, run.checkpoints or checkpoints)
        self._run = run
        self._master = run.master or master
        self._on_error = _check_on_error(on_error)
        self._spark_configs = {k: v for k, v in texts.items() if not k.startswith(PREFIX)}
        self._cluster = ClusterOptions(
            self.bootstrap, {k: v for k, v in texts.items() if k.startswith(PREFIX)}
        )
        self._spark: SparkSession | None = None
        self._sources: list[Source] = []
        self._tables: list[TopicTable] = []
        self._queries: list[Query] = []
        self._dead_letters: Query | None = None
        self._running: dict[str, StreamingQuery] = {}
        self._committer = Committer(self)

    @property
    def spark(self) -> SparkSession:
        """The session: the one that is there, or one that is made now."""
        if self._spark is None:
            if self._run.asks_first:
                check_brokers(self.client_config)
            self._spark = get_session(
                self.name, self._master, self._spark_configs, is_quiet=self._run.is_quiet
            )
        return self._spark

    @property
    def client_config(self) -> dict[str, str]:
        """The settings of clients of this app, by Kafka's names."""
        return {name.removeprefix(PREFIX): text for name, text in self._cluster.options.items()}

    @property
    def sources(self) -> tuple[Source, ...]:
        """The topics that are read."""
        return tuple(self._sources)

    @property
    def tables(self) -> tuple[TopicTable, ...]:
        """The topics that are read as tables."""
        return tuple(self._tables)

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that were declared, and that for dead letters if a source has any."""
        sources = find_dead_letter_sources(self._sources)
        # A backfill reads again what has been read: its dead letters are there already.
        if not sources or self._run.into is not None:
            return tuple(self._queries)
        if self._dead_letters is None or self._dead_letters.sources != sources:
            self._dead_letters = make_dead_letter_query(
                self.name, self.spark, self._cluster, sources
            )
        return (*self._queries, self._dead_letters)

    # Declaring.

    def stream(  # noqa: PLR0913 - every one of them says something about a topic
        self,
        topic: str,
        schema: str | StructType | None = None,
        *,
        key: str | None = None,
        format: str = "json",  # noqa: A002 - as Spark calls it
        event_time: str | None = None,
        event_time_unit: str | None = None,
        watermark: str | None = None,
        on_error: OnError | None = None,
        starting: str = "earliest",
        metadata: bool | Sequence[str] = False,
        options: Mapping[str, object] | None = None,
    ) -> DataFrame:
        """Return a topic's records as a streaming DataFrame, for every operation of PySpark.

        Its columns are those of `key`, as in `"user string"`, those of the value, and with
        `metadata` where the record is: `_topic`, `_partition`, `_offset`, `_timestamp`, `_headers`,
        or those of them that it names, without the dash: `metadata=["timestamp"]`.
        A new query begins at `starting`: earliest, latest, or milliseconds since 1970. The column
        `event_time` is a timestamp, or a bigint that counts since 1970 in `event_time_unit` (s, ms,
        us or ns; ms if it is not said), of which a timestamp is made.
        """
        spark = self.spark  # Schemas are parsed by it.
        source = self._source(topic, schema, key, format, on_error, starting, options)
        source = replace(source, epoch=find_epoch(source, event_time, event_time_unit))
        columns = check_metadata(metadata)
        needed = (*columns, *time_columns(columns, self._run))
        rows = load_rows(spark, self._cluster, source, self._run, needed)
        is_epoch = source.epoch is not None
        timed = with_event_time(rows, event_time, watermark, is_epoch=is_epoch)
        if self._run.is_test:
            time = event_time if watermark is not None else None
            timed = without_time_records(timed, time, columns)
        self._sources.append(replace(source, event_time=event_time))
        return timed

    def _source(
        self,
        topic: str,
        schema: str | StructType | None,
        key: str | None,
        value_format: str,
        on_error: OnError | None,
        starting: str = "earliest",
        options: Mapping[str, object] | None = None,
    ) -> Source:
        key_format, key_schema = read_key(key)
        source = Source(
            topic,
            value_format,
            schema.toDDL() if isinstance(schema, StructType) else schema,
            key_format,
            key_schema,
            _check_on_error(on_error or self._on_error),
            self.checkpoints.starting() or str(starting),
            {name: str(value) for name, value in (options or {}).items()},
        )
        check_format(source)
        return source

    def table(  # noqa: PLR0913 - as in stream
        self,
        topic: str,
        key: str,
        schema: str | StructType | None = None,
        *,
        format: str = "json",  # noqa: A002 - as Spark calls it
        event_time: str | None = None,
        event_time_unit: str | None = None,
        on_error: OnError | None = None,
        metadata: bool | Sequence[str] = False,
        options: Mapping[str, object] | None = None,
    ) -> Table:
        """Return a topic of which the latest value of each key counts, to look at or to join.

        A bigint that `event_time` names becomes a timestamp, and `metadata` adds columns of the
        record to the value's, as in `stream`.
        """
        spark = self.spark  # Schemas are parsed by it.
        source = self._source(topic, schema, key, format, on_error, options=options)
        source = replace(source, epoch=find_epoch(source, event_time, event_time_unit))
        table = TopicTable(spark, self._cluster, source, check_metadata(metadata))
        self._sources.append(source)
        self._tables.append(table)
        return table

    @overload
    def join(
        self,
        left: DataFrame,
        right: Table,
        *,
        on: str | Sequence[str] | None = None,
        how: str = "inner",
        late: str = "keep",
    ) -> DataFrame: ...

    @overload
    def join(
        self,
        left: Table,
        right: Table,
        *,
        on: str | Sequence[str] | None = None,
        how: str = "inner",
    ) -> Table: ...

    def join(
        self,
        left: DataFrame | Table,
        right: Table,
        *,
        on: str | Sequence[str] | None = None,
        how: str = "inner",
        late: str = "keep",
    ) -> DataFrame | Table:
        """Return a stream's rows, each with the table's as it is then (`how`: inner, left).

        `on` are the stream's columns that are the table's key. For a window behind the join say
        `late="drop"`: the watermark goes on then, and rows behind it are dropped. Of two tables,
        whose keys are equal, it is a table (inner, left, outer); with `on`, columns of the left one
        are the right one's key (inner, left), and the key is the left one's.
        """
        return join(left, right, on=on, how=how, late=late)

    @overload
    def aggregate(
        self, rows: DataFrame, /, by: str | Sequence[str], *, ttl: Duration, **results: str
    ) -> DataFrame: ...

    @overload
    def aggregate(
        self, rows: DataFrame, /, by: str | Sequence[str], *, sliding: Duration, **results: str
    ) -> DataFrame: ...

    @overload
    def aggregate(self, rows: Table, /, by: str | Sequence[str], **results: str) -> Table: ...

    def aggregate(
        self,
        rows: DataFrame | Table,
        /,
        by: str | Sequence[str],
        *,
        ttl: Duration | None = None,
        sliding: Duration | None = None,
        **results: str,
    ) -> DataFrame | Table:
        """Return results by key that are forgotten when no row of the key has come for `ttl`.

        `total="sum(amount)"` names a result; count, sum, avg, min and max are there, of any
        expression of SQL. Time is the machine's. For `app.to`, these are `changes`. `sliding`, in
        the place of `ttl`, gives the results of windows of event time as long as that, which slide
        from row to row, when each is over. Of a table, without either, it is a table: a row that
        changes takes back what it has added.
        """
        if isinstance(rows, Table):
            if ttl is not None or sliding is not None:
                option = f"ttl={ttl}" if sliding is None else f"sliding={sliding}"
                raise OptionError(
                    f"{option}: a table's row counts until it is deleted; leave that out"
                )
            return AggregatedTable(rows, by, results)
        if sliding is not None and ttl is None:
            return aggregate_sliding(rows, by, sliding, results)
        if ttl is None or sliding is not None:
            raise OptionError(
                'aggregate: say when a key is forgotten, as ttl="7 days", or in which windows, as '
                'sliding="10 seconds"; groupBy and agg of PySpark keep every key'
            )
        return aggregate(rows, by, ttl, results)

    def to(
        self,
        rows: DataFrame | Table,
        topic: str,
        *,
        key: str | Sequence[str] | None = None,
        emit: Emit | None = None,
        name: str | None = None,
        partitions: int | None = None,
        headers: HeaderColumns | None = None,
    ) -> Query:
        """Declare a query that writes rows to a topic, exactly once.

        The value is JSON of all columns, the key that of `key`'s. Aggregates emit `final`, each
        window once, when the watermark passes it, or `changes`, every batch's new results. Of a
        table, all changes are written, by its own key. `headers` are columns by their names, or
        expressions of columns, which are text or bytes: `{"trace": "id", "from": F.lit("shop")}`.
        """
        query = self.declare(
            rows, topic, key=key, emit=emit, name=name, partitions=partitions, headers=headers
        )
        growth = describe_growth(query.plan)
        if growth is not None:
            warnings.warn(f"query {query.name}: {growth}", GrowingStateWarning, stacklevel=2)
        return query

    def declare(  # noqa: PLR0913 - as in stream
        self,
        rows: DataFrame | Table,
        topic: str,
        *,
        key: str | Sequence[str] | None = None,
        emit: Emit | None = None,
        name: str | None = None,
        partitions: int | None = None,
        group: str | None = None,
        written: Written | None = None,
        headers: HeaderColumns | None = None,
    ) -> Query:
        """Declare a query as `to` does, without a warning: SQL says by itself what it keeps.

        `group` is told how far it has come, if not `moldau-APP:NAME`. `written` is for rows that
        are encoded already.
        """
        keys = [key] if isinstance(key, str) else list(key or ())
        if isinstance(rows, Table):
            if keys or emit == "final":
                raise OptionError("a table has a key, and changes: leave key and emit out")
            keys, emit = rows.key.names, "changes"
            written = Written(rows.key, rows.value)
            rows = rows.records(*(_headers(rows.changes(), headers) if headers else ()))
            headers = None
        plan = explain(rows)
        chosen, mode = choose_emit(plan, emit)
        if chosen == "changes" and not keys:
            raise PipelineError(
                "emit=changes: rows replace those before them that have the same key; give key"
            )
        query_name = check_name("name", name or topic)
        if self._run.into is not None:
            topic = self._run.into.replace("{query}", query_name)
            # A backfill never goes on from the checkpoint of the query itself, nor from that of
            # another time.
            begin, end = self._run.begin_ms or 0, self._run.end_ms or ""
            query_name = f"{query_name}@{topic}@{begin}-{end}"
        self._check_new(query_name)
        sources = tuple(each for each in self._sources if each.topic in plan.topics)
        query = Query(
            query_name,
            encode(rows, keys, _headers(rows, headers)),
            topic,
            chosen,
            mode,
            plan,
            sources,
            partitions,
            group,
            written or describe_written(rows, keys),
        )
        self._queries.append(query)
        return query

    def _check_new(self, query_name: str) -> None:
        for query in self._queries:
            if query.name == query_name:
                raise PipelineError(
                    f"query {query_name} is there already: give this one another name"
                )

    # Running.

    def start_query(self, query: Query, *, once: bool = False) -> "StreamingQuery":
        """Start one query, and begin to commit its offsets."""
        check_place(self.spark, self.checkpoints)
        # One query may read what another writes.
        create_topics(self.client_config, self.queries)
        started = start_stream(query, self._cluster, self.checkpoints, once=once)
        self._running[query.name] = started
        self._committer.watch(query, started)
        return started

    def start(self, *, once: bool = False) -> "list[StreamingQuery]":
        """Start all queries and return at once; `once` reads what is there and ends."""
        if not self.queries:
            raise PipelineError(f"app {self.name} has no queries: declare some with app.to")
        if once:
            _check_independent(self.queries)
        return [self.start_query(query, once=once) for query in self.queries]

    def stop(self) -> None:
        """Stop the queries that run; the session stays, if it is not lost already."""
        for query in self._running.values():
            try:
                query.stop()
            except Exception as error:
                if find_loss(self._spark, error) is None:
                    raise
        self._committer.finish()
        self._running.clear()

    def run(self, *, once: bool = False) -> None:
        """Run all queries until they end or are stopped, and start again those that fail.

        This is for a program's end: where a query was given up, the program exits with 1.
        """
        # They know apps, and not the other way round but here.
        from moldau.pipelines.supervision.app_file import stop_if_loading  # noqa: PLC0415
        from moldau.pipelines.supervision.run import run_app  # noqa: PLC0415

        stop_if_loading()
        try:
            is_fine = run_app(self, once=once)
        except PipelineError as error:
            sys.exit(f"{self.name}: {error}")
        if not is_fine:
            sys.exit(1)

    def preview(self, df: DataFrame | Table, rows: int = 10) -> list[Row]:
        """Return some rows of what is there now; nothing is written, no checkpoint is kept."""
        return take_rows(self.spark, df.snapshot() if isinstance(df, Table) else df, rows)


def _file_of(frame: FrameType | None) -> str | None:
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        return None
    return caller.f_code.co_filename


def _headers(rows: DataFrame, headers: HeaderColumns | None) -> list[Column]:
    return [header_column(rows, headers)] if headers else []


def _check_independent(queries: Sequence[Query]) -> None:
    """Refuse queries that would read what is not written yet, and end."""
    for name, feeders in find_feeders(queries).items():
        if feeders:
            raise PipelineError(
                f"start(once=True): query {name} reads what {min(feeders)} writes, and would end "
                "before that is there; app.run(once=True) runs one behind the other"
            )


def _check_on_error(on_error: OnError) -> OnError:
    if on_error not in ON_ERROR:
        raise OptionError(f"on_error={on_error}: {', '.join(ON_ERROR)} are allowed")
    return on_error
