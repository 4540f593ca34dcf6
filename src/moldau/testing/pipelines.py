"""An app under test: its queries run on what a test sends, and end when they have read it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from pyspark.errors import PySparkException

from moldau import Producer, Record
from moldau.kernel.durations import Duration, seconds_of
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.session import get_session
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.declared import Query, Source
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.pipelines.streams.sources import ClusterOptions
from moldau.pipelines.streams.tables import TopicTable
from moldau.pipelines.streams.time_records import TIME_HEADER
from moldau.pipelines.streams.waves import find_feeders, in_waves
from moldau.pipelines.supervision.app_file import load_app
from moldau.pipelines.supervision.failures import failure_of
from moldau.pipelines.supervision.progress import has_moved
from moldau.testing.broker import Broker, SettingValues
from moldau.testing.reading import read_committed
from moldau.testing.rows import decode_row, encode_lone_key, encode_row, encode_time, read_time

Declaration: TypeAlias = App | str | Path | Callable[[], App]
"""An app that a file makes, that file, or a function that makes one."""

CONFIGS: Final = {
    # One task writes all rows of a query: they come in one order, and nothing waits for others.
    "spark.sql.shuffle.partitions": "1",
    # To compile a plan costs more than to run it uncompiled for a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What a time without a zone means must not depend on the machine.
    "spark.sql.session.timeZone": "UTC",
}
"""What is different in the session while the app is tested."""


class Pipeline:
    """Runs an app against a broker of its own, in memory, with checkpoints of its own.

        with Pipeline(app) as t:
            t.send("orders", [{"id": "o1", "amount": 3.5, "at": "2026-11-16T08:00:00Z"}])
            t.run()
            assert t.rows("totals") == [...]

    The app is declared once more, for this broker: its file is run again, or its function called.
    """

    def __init__(
        self,
        declaration: Declaration,
        *,
        partitions: int = 1,
        settings: SettingValues | None = None,
    ) -> None:
        self._declare = _declare_again(declaration)
        self._partitions = partitions
        self.broker = Broker(settings=settings)
        """The broker, with its faults and its clock."""
        self._stack = ExitStack()
        self._times: dict[str, datetime] = {}
        """The latest time that was sent in each column of event time."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.broker)
            spark = get_session("tests")
            for name, value in CONFIGS.items():
                stack.callback(spark.conf.set, name, str(spark.conf.get(name)))
                spark.conf.set(name, value)
            self._options = RunOptions(
                bootstrap=self.broker.bootstrap_servers,
                master=spark.conf.get("spark.master", None),
                checkpoints=stack.enter_context(TemporaryDirectory(prefix="moldau-pipeline-")),
                is_test=True,
            )
            self._producer = stack.enter_context(Producer(self.broker.bootstrap_servers))
            self.app = self._make()
            for topic in self._topics:
                self.broker.create_topic(topic, partitions=self._partitions)
            stack.callback(self._stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _make(self) -> App:
        with run_with(self._options):
            return self._declare()

    def _stop(self) -> None:
        # The app of now: `restart` makes others.
        self.app.stop()

    @property
    def _topics(self) -> list[str]:
        """The topics that the app reads and does not write."""
        written = {query.topic for query in self.app.queries}
        read = {source.topic for source in self.app.sources}
        return sorted(read - written)

    # What the app reads.

    def send(
        self,
        topic: str,
        rows: Iterable[Mapping[str, Any] | bytes | str],
        *,
        key: str | Sequence[str] = (),
    ) -> None:
        """Send rows to a topic that the app reads; they are there when this returns.

        A row has the columns of the value and of the declared key. Where no key was declared,
        `key` names columns that make one.
        """
        source = self._source(topic)
        names = [key] if isinstance(key, str) else list(key)
        deliveries = []
        for row in rows:
            key_bytes, value = encode_row(source, row, names)
            deliveries.append(self._producer.send(topic, value, key_bytes))
            self._note_time(topic, row)
        for delivery in deliveries:
            delivery.result()

    def delete(self, topic: str, *keys: object) -> None:
        """Send tombstones: a table forgets these keys."""
        source = self._source(topic)
        for key in keys:
            self._producer.send(topic, None, encode_lone_key(source, key)).result()

    def advance(self, column: str, by: Duration) -> None:
        """Let event time go on, from the latest that was sent, for streams that go by a column.

        The next run moves the watermark, which is later than that by as much as was declared.
        No row comes with it: nothing is counted, joined or written for it.
        """
        sources = [each for each in self.app.sources if each.event_time == column]
        if not sources:
            known = sorted({each.event_time for each in self.app.sources if each.event_time})
            raise PipelineError(
                f"advance: no stream has event_time={column}; there is {', '.join(known) or 'none'}"
            )
        if column not in self._times:
            raise PipelineError(f"advance: no row with {column} was sent yet: time has not begun")
        self._times[column] += timedelta(seconds=seconds_of(by))
        for topic, source in {each.topic: each for each in sources}.items():
            value = encode_time(source, column, self._times[column])
            self._producer.send(topic, value, headers=[(TIME_HEADER, b"")]).result()

    def _source(self, topic: str) -> Source:
        sources = [source for source in self.app.sources if source.topic == topic]
        if not sources:
            names = ", ".join(sorted({source.topic for source in self.app.sources}))
            raise PipelineError(f"app {self.app.name} does not read {topic}: it reads {names}")
        return next((each for each in sources if each.key_schema is not None), sources[0])

    def _note_time(self, topic: str, row: Mapping[str, Any] | bytes | str) -> None:
        if not isinstance(row, Mapping):
            return
        for source in self.app.sources:
            column = source.event_time
            if source.topic == topic and column is not None and row.get(column) is not None:
                time = read_time(source, column, row[column])
                self._times[column] = max(time, self._times.get(column, time))

    # Running.

    def run(self) -> None:
        """Run all queries until they have read what is there; those behind others come later.

        Queries that go round in a circle run until none of them finds anything more.

        `PipelineError` says in one line why a query has failed.
        """
        try:
            feeders = find_feeders(self.app.queries)
            for queries in in_waves(self.app.queries):
                self._run_together(queries)
                circle = [query for query in queries if query.name in feeders[query.name]]
                while circle and self._run_together(circle):
                    pass
        finally:
            self.app.stop()

    def _run_together(self, queries: Sequence[Query]) -> bool:
        """Return whether one of them had something to do."""
        started = {query.name: self.app.start_query(query, once=True) for query in queries}
        for name, query in started.items():
            try:
                query.awaitTermination()
            except PySparkException as error:
                raise PipelineError(f"query {name}: {failure_of(error).line}") from None
        return any(has_moved(query.recentProgress) for query in started.values())

    def restart(self) -> None:
        """Declare the app once more, as another run of its file does: checkpoints stay."""
        self.app.stop()
        self.app = self._make()

    # What the app writes.

    def table(self, topic: str) -> TopicTable:
        """Return a table that the app reads, to look at: `t.table("users").get("ann")`."""
        source = self._source(topic)
        if source.key_schema is None:
            raise PipelineError(f"topic {topic} is no table of app {self.app.name}: it has no key")
        return TopicTable(self.app.spark, ClusterOptions(self.broker.bootstrap_servers, {}), source)

    def rows(self, topic: str) -> list[Any]:
        """Return what was written to a topic: JSON as Python has it, None for a tombstone."""
        return [decode_row(record.value) for record in self.records(topic)]

    def records(self, topic: str) -> list[Record]:
        """Return a topic's committed records, with keys and headers as bytes."""
        topics = self.broker.topics()
        if topic not in topics:
            names = ", ".join(name for name in sorted(topics) if not name.startswith("__"))
            raise PipelineError(f"there is no topic {topic}: there are {names or 'none'}")
        found = read_committed(self.broker.bootstrap_servers, topic, topics[topic])
        return [each for each in found if all(name != TIME_HEADER for name, _ in each.headers)]


def _declare_again(declaration: Declaration) -> Callable[[], App]:
    if isinstance(declaration, str | Path):
        path = str(declaration)
        return lambda: load_app(path)
    if not isinstance(declaration, App):
        return declaration
    name, file = declaration.name, declaration.made_in
    if file is None:
        raise PipelineError(
            f"app {name} was made by a function, and is to be made again for the test's broker: "
            "give that function to pipeline"
        )
    return lambda: load_app(file, name)
