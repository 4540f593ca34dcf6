"""How far a batch is while it runs: Spark's progress tells of it only when it has ended.

Tasks are in Spark's status tracker, rows in what its page of SQL queries would show, which
executors tell with their heartbeats. (What a stage says of its input is told when its tasks end,
where the executor is in the driver's process.) Spark Connect has neither: there is the phase alone.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from moldau.pipelines.supervision.progress import BatchSoFar

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.streaming.query import StreamingQuery

_SCAN: Final = "MicroBatchScan"
_ROWS: Final = "number of output rows"
_EXECUTIONS_MAX: Final = 10
"""How far to look back for those that a query runs: Spark keeps a thousand."""


class LongBatch:
    """Looks into the batch that a query runs."""

    def __init__(self, query: "StreamingQuery") -> None:
        self._query = query
        self._scans: dict[int, list[int]] = {}
        """By execution, the numbers that its scans count rows with."""

    def look(self, *, is_first: bool) -> BatchSoFar | None:
        """Return how far the batch is, or the start of a query if none has ended yet."""
        try:
            return self._look(is_first=is_first)
        except Exception:  # noqa: BLE001 - what is only shown stops no query
            return None

    def _look(self, *, is_first: bool) -> BatchSoFar | None:
        context = _find_context(self._query)
        jobs = [] if context is None else _active_jobs(context, str(self._query.runId))
        if not jobs and not is_first:
            return None
        phase = self._query.status["message"]
        if context is None or not jobs:
            return BatchSoFar(phase=phase)
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(each) for job in jobs for each in job.stageIds]
        return BatchSoFar(
            phase=phase,
            rows=self._count_rows({job.jobId for job in jobs}),
            tasks_done=sum(each.numCompletedTasks for each in stages if each is not None),
            tasks=sum(each.numTasks for each in stages if each is not None),
        )

    def _count_rows(self, jobs: set[int]) -> int | None:
        spark = self._query._jsq.sparkSession()  # noqa: SLF001
        try:
            store = spark.sharedState().statusStore()
            return sum(self._rows_of(store, each) for each in _executions(store, jobs))
        except (Py4JError, TypeError, ValueError):
            return None  # Another Spark has other insides.

    def _rows_of(self, store: Any, execution: int) -> int:
        if execution not in self._scans:
            self._scans = {execution: list(_find_scans(store.planGraph(execution)))}
        metrics = store.executionMetrics(execution)
        told = (metrics.get(each) for each in self._scans[execution])
        return sum(int(each.get().replace(",", "")) for each in told if each.isDefined())


def _find_context(query: "StreamingQuery") -> "SparkContext | None":
    from pyspark import SparkContext  # noqa: PLC0415 - not to be had with Spark Connect alone

    return SparkContext._active_spark_context if hasattr(query, "_jsq") else None  # noqa: SLF001


def _active_jobs(context: "SparkContext", run_id: str) -> list[Any]:
    """Return the jobs of a query that run: Spark groups them by the run."""
    tracker = context.statusTracker()
    active = set(tracker.getActiveJobsIds()).intersection(tracker.getJobIdsForGroup(run_id))
    return [job for job in map(tracker.getJobInfo, sorted(active)) if job is not None]


def _executions(store: Any, jobs: set[int]) -> Iterator[int]:
    """Yield the executions that these jobs are of."""
    count = store.executionsCount()
    latest = store.executionsList(max(0, count - _EXECUTIONS_MAX), _EXECUTIONS_MAX)
    for place in range(latest.size()):
        execution = latest.apply(place)
        if any(execution.jobs().contains(job) for job in jobs):
            yield execution.executionId()


def _find_scans(graph: Any) -> Iterator[int]:
    nodes = graph.allNodes()
    for node in map(nodes.apply, range(nodes.size())):
        if not node.name().startswith(_SCAN):
            continue
        metrics = node.metrics()
        for metric in map(metrics.apply, range(metrics.size())):
            if metric.name() == _ROWS:
                yield metric.accumulatorId()
