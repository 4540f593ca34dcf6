"""How a query is doing, in the numbers that people and scripts ask for."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from moldau.pipelines.decoding.decode_counts import DecodeCounts, read_decode_counts
from moldau.pipelines.supervision.restarts import (
    Ended,
    Held,
    RestartState,
    Running,
    Starting,
    Waiting,
)

Word = Literal["held", "starting", "running", "waiting", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNumbers:
    """What Spark says of a query's last batch, as far as anybody asks."""

    batch: int
    rows_in: int
    rows_out: int | None
    """None where the sink does not count them."""
    rows_in_per_second: float
    rows_out_per_second: float | None
    batch_seconds: float
    lag: int
    """Records that were there when the batch began, and that it has not reached."""
    state_rows: int
    state_bytes: int
    """On the disk of the machines that keep it, where RocksDB does; else in memory."""
    late_rows: int
    """Rows of this batch that came after the watermark, and were dropped."""
    decoding: DecodeCounts = field(default_factory=DecodeCounts)
    """Records of this batch that did not decode."""

    def at_rest(self, lag: int) -> "BatchNumbers":
        """Return what holds while there is nothing to do after the batch."""
        rate = None if self.rows_out_per_second is None else 0.0
        return replace(self, rows_in_per_second=0.0, rows_out_per_second=rate, lag=lag)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSoFar:
    """How far a batch is that has not ended yet; None is what Spark does not tell."""

    phase: str
    """What Spark says of it."""
    rows: int | None = None
    """Rows that were read."""
    tasks_done: int | None = None
    tasks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """What all batches of a run have done."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int | None = None
    """None where the sink does not count them."""
    late_rows: int = 0
    decoding: DecodeCounts = field(default_factory=DecodeCounts)

    def plus(self, numbers: BatchNumbers) -> "RunTotals":
        """Return them with another batch."""
        is_counted = numbers.rows_out is not None
        return RunTotals(
            batches=self.batches + 1,
            rows_in=self.rows_in + numbers.rows_in,
            rows_out=(self.rows_out or 0) + (numbers.rows_out or 0) if is_counted else None,
            late_rows=self.late_rows + numbers.late_rows,
            decoding=self.decoding + numbers.decoding,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """A query, whether it runs or not."""

    query: str
    state: Word
    reason: str | None = None
    """Why it does not run."""
    retry_seconds: float | None = None
    """When it starts again."""
    restarts: int = 0
    totals: RunTotals = RunTotals()
    last: BatchNumbers | None = None
    so_far: BatchSoFar | None = None
    """Of the batch that is under way, if it takes long."""

    @property
    def skipped(self) -> int:
        """Records of this run that did not decode, and were left out."""
        return self.totals.decoding.skipped

    @property
    def dead_lettered(self) -> int:
        """Records of this run that did not decode, and are dead letters."""
        return self.totals.decoding.dead_lettered

    def to_json(self) -> dict[str, Any]:
        """Return it as one flat object: what is of a whole run stands beside the last batch's."""
        row = asdict(self)
        numbers = row.pop("last") or dict.fromkeys(BatchNumbers.__slots__)
        numbers.pop("decoding")
        totals, so_far = row.pop("totals"), row.pop("so_far") or {}
        return {
            **row,
            **numbers,
            "late_rows": self.totals.late_rows,
            "skipped": self.skipped,
            "dead_lettered": self.dead_lettered,
            "batches": totals["batches"],
            "total_rows_in": totals["rows_in"],
            "total_rows_out": totals["rows_out"],
            "phase": so_far.get("phase"),
            "batch_rows_so_far": so_far.get("rows"),
            "batch_tasks_done": so_far.get("tasks_done"),
            "batch_tasks": so_far.get("tasks"),
        }


def is_idle(progress: Mapping[str, Any]) -> bool:
    """Whether Spark tells, under the number of the next batch, that there is none yet."""
    return "addBatch" not in progress.get("durationMs", {})


def has_moved(batches: Iterable[Any]) -> bool:
    """Whether one of what Spark tells was a batch; each is a `StreamingQueryProgress`."""
    return not all(is_idle(json.loads(batch.json)) for batch in batches)


def read_progress(progress: Mapping[str, Any]) -> BatchNumbers:
    """Read Spark's progress of a batch, as it is in JSON."""
    seconds = progress.get("batchDuration", 0) / 1000
    operators = progress.get("stateOperators", [])
    rows_in = sum(source.get("numInputRows") or 0 for source in progress["sources"])
    # Spark says -1 where a sink does not count.
    written = progress.get("sink", {}).get("numOutputRows", -1)
    rows_out = None if written is None or written < 0 else written
    return BatchNumbers(
        batch=progress["batchId"],
        rows_in=rows_in,
        rows_out=rows_out,
        rows_in_per_second=_per_second(rows_in, seconds),
        rows_out_per_second=None if rows_out is None else _per_second(rows_out, seconds),
        batch_seconds=seconds,
        lag=sum(map(_lag, progress["sources"])),
        state_rows=_sum(operators, "numRowsTotal"),
        state_bytes=sum(map(_state_bytes, operators)),
        late_rows=_sum(operators, "numRowsDroppedByWatermark"),
        decoding=read_decode_counts(progress),
    )


def _state_bytes(operator: Mapping[str, Any]) -> int:
    """Return the size of RocksDB's files; `memoryUsedBytes` is that of its caches, not of rows.

    Spark's other state store has all rows in memory.
    """
    files = operator.get("customMetrics", {}).get("rocksdbSstFileSize")
    return (operator.get("memoryUsedBytes") if files is None else files) or 0


def _per_second(rows: int, seconds: float) -> float:
    return round(rows / seconds, 1) if seconds else 0.0


def _sum(operators: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(operator.get(name) or 0 for operator in operators)


def _lag(source: Mapping[str, Any]) -> int:
    ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return sum(
        max(0, offset - ends.get(topic, {}).get(partition, 0))
        for topic, offsets in latest.items()
        for partition, offset in offsets.items()
    )


def _offsets(value: Any) -> Mapping[str, Mapping[str, int]]:
    """Return offsets, which are text or what it says: that depends on the version and on Connect.

    What is none is of a source that is none of ours.
    """
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    is_ours = isinstance(found, dict) and all(isinstance(each, dict) for each in found.values())
    return found if is_ours else {}


def status_of(
    name: str,
    state: RestartState,
    now: float,
    *,
    restarts: int = 0,
    totals: RunTotals | None = None,
    last: BatchNumbers | None = None,
    so_far: BatchSoFar | None = None,
) -> QueryStatus:
    """Return what is to be told of a query."""
    word: Word
    reason: str | None = None
    retry_seconds: float | None = None
    match state:
        case Held():
            word, reason = "held", f"it waits for the end of {', '.join(state.feeders)}"
        case Starting():
            word = "starting"
        case Running():
            word = "running"
        case Waiting():
            word, reason = "waiting", state.reason
            retry_seconds = round(max(0.0, state.until - now), 1)
        case Ended():
            word, reason = "stopped" if state.reason is None else "failed", state.reason
    return QueryStatus(
        query=name,
        state=word,
        reason=reason,
        retry_seconds=retry_seconds,
        restarts=restarts,
        totals=totals or RunTotals(),
        last=last,
        so_far=so_far,
    )
