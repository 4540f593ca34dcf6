"""The numbers of an app's queries, for Prometheus."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from moldau.cli.frame import CommandError
from moldau.runtime.metrics import MetricKind, Metrics, render_labels
from moldau.runtime.metrics_server import MetricsServer

if TYPE_CHECKING:
    from moldau.pipelines.supervision.progress import QueryStatus
    from moldau.pipelines.supervision.supervisor import Audience

HOST: Final = "127.0.0.1"

NUMBERS: Final[dict[str, tuple[MetricKind, str, str]]] = {
    "batch": ("gauge", "batch", "The number of the last batch."),
    "rows_in_per_second": ("gauge", "rows_in_per_second", "Records read by the last batch."),
    "rows_out_per_second": ("gauge", "rows_out_per_second", "Rows written by the last batch."),
    "lag": ("gauge", "lag_records", "Records that the last batch has not reached."),
    "batch_seconds": ("gauge", "batch_seconds", "How long the last batch took."),
    "state_rows": ("gauge", "state_rows", "Rows in the state."),
    "state_bytes": ("gauge", "state_bytes", "Size of the state."),
    "batches": ("counter", "batches_total", "Batches that have ended."),
    "total_rows_in": ("counter", "rows_in_total", "Records read by all batches that have ended."),
    "total_rows_out": ("counter", "rows_out_total", "Rows written by all batches."),
    "batch_rows_so_far": ("gauge", "batch_rows_so_far", "Records read by a batch that runs."),
    "skipped": (
        "counter",
        "skipped_records_total",
        "Records that did not decode, and are skipped.",
    ),
    "dead_lettered": (
        "counter",
        "dead_lettered_records_total",
        "Records that did not decode, and are dead letters.",
    ),
    "late_rows": ("counter", "late_rows_total", "Rows dropped because they came too late."),
    "restarts": ("counter", "restarts_total", "How often the query was started again."),
}
"""What is told, by the name that it has in `QueryStatus.to_json`."""


class PipelineMetrics:
    """Keeps the last numbers, passes them on, and serves them over HTTP."""

    def __init__(self, app: str, audience: "Audience") -> None:
        self._app = app
        self._audience = audience
        self._rows: list[dict[str, Any]] = []
        self._metrics = Metrics()
        self._loop = asyncio.new_event_loop()
        self._server = MetricsServer(self._metrics, time.perf_counter)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="moldau-metrics", daemon=True
        )
        self.report = audience.report
        self.explain = audience.explain
        self._metrics.table(
            "moldau_pipeline_up",
            "gauge",
            "Whether the query runs.",
            lambda: [(self._labels(row), float(row["state"] == "running")) for row in self._rows],
        )
        for field, (kind, name, about) in NUMBERS.items():
            self._metrics.table(
                f"moldau_pipeline_{name}", kind, about, partial(self._values, field)
            )

    def show(self, statuses: "Sequence[QueryStatus]") -> None:
        """Take how all queries are now."""
        self._rows = [status.to_json() for status in statuses]
        self._audience.show(statuses)

    def render(self) -> str:
        """Return the numbers of now, as text."""
        return self._metrics.render()

    def _values(self, field: str) -> Iterator[tuple[str, float]]:
        return ((self._labels(row), row[field]) for row in self._rows if row[field] is not None)

    def _labels(self, row: dict[str, Any]) -> str:
        return render_labels({"app": self._app, "query": row["query"]})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def listen(self, port: int) -> int:
        """Serve from now on; return the port."""
        start = self._server.start(HOST, port)
        try:
            return asyncio.run_coroutine_threadsafe(start, self._loop).result()
        except (OSError, OverflowError) as error:
            raise CommandError(
                f"--metrics-port {port}: {error}: choose another, or 0 for any that is free"
            ) from error
