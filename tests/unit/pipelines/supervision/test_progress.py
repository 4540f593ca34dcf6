"""What is made of Spark's progress."""

import json
from typing import Any

import pytest

from moldau.pipelines.decoding.decode_counts import DecodeCounts
from moldau.pipelines.supervision.progress import (
    BatchSoFar,
    RunTotals,
    is_idle,
    read_progress,
    status_of,
)
from moldau.pipelines.supervision.restarts import (
    Ended,
    Held,
    RestartState,
    Running,
    Starting,
    Waiting,
)


def progress(**more: Any) -> dict[str, Any]:
    source = {
        "numInputRows": 40,
        "endOffset": {"in": {"0": 30, "1": 10}},
        "latestOffset": {"in": {"0": 35, "1": 10, "2": 7}},
    }
    return {
        "batchId": 3,
        "batchDuration": 2000,
        "durationMs": {"addBatch": 1500},
        "sources": [source],
        "stateOperators": [
            {"numRowsTotal": 5, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 2},
            {"numRowsTotal": 6, "memoryUsedBytes": 200, "numRowsDroppedByWatermark": 1},
        ],
        "sink": {"numOutputRows": 10},
    } | more


def test_the_numbers_of_a_batch() -> None:
    numbers = read_progress(progress())
    assert (numbers.batch, numbers.rows_in, numbers.rows_out) == (3, 40, 10)
    assert (numbers.rows_in_per_second, numbers.rows_out_per_second) == (20.0, 5.0)
    assert (numbers.lag, numbers.batch_seconds) == (12, 2.0)
    assert (numbers.state_rows, numbers.state_bytes, numbers.late_rows) == (11, 300, 3)


def test_a_sink_that_does_not_count() -> None:
    numbers = read_progress(progress(sink={"numOutputRows": -1}))
    assert (numbers.rows_out, numbers.rows_out_per_second) == (None, None)


def test_offsets_as_text_and_of_other_sources() -> None:
    texts = {
        "endOffset": json.dumps({"in": {"0": 1}}),
        "latestOffset": json.dumps({"in": {"0": 4}}),
    }
    others = [{"endOffset": end, "latestOffset": end} for end in (None, 7, "x", {"a": 1}, "[1]")]
    assert read_progress(progress(sources=[texts, *others])).lag == 3


def test_a_query_at_rest_keeps_what_its_last_batch_was() -> None:
    assert not is_idle(progress())
    assert is_idle(progress(durationMs={"latestOffset": 3, "triggerExecution": 3}))
    resting = read_progress(progress()).at_rest(0)
    assert (resting.rows_in_per_second, resting.rows_out_per_second, resting.lag) == (0.0, 0.0, 0)
    assert (resting.batch, resting.state_rows) == (3, 11)


@pytest.mark.parametrize(
    ("state", "word", "reason", "retry_seconds"),
    [
        (Held(("a", "b")), "held", "it waits for the end of a, b", None),
        (Starting(), "starting", None, None),
        (Running(1.0), "running", None, None),
        (Waiting(12.5, "away"), "waiting", "away", 2.5),
        (Ended(), "stopped", None, None),
        (Ended("no such topic"), "failed", "no such topic", None),
    ],
)
def test_words_for_states(
    state: RestartState, word: str, reason: str | None, retry_seconds: float | None
) -> None:
    totals = RunTotals(late_rows=9)
    row = status_of("totals", state, 10.0, restarts=2, totals=totals).to_json()
    assert (row["state"], row["reason"], row["retry_seconds"]) == (word, reason, retry_seconds)
    assert (row["restarts"], row["late_rows"], row["batch"]) == (2, 9, None)


def test_what_is_of_the_whole_run() -> None:
    observed = {"moldau.undecodable.skipped.0.t": {"records": 4}}
    first = read_progress(progress(observedMetrics=observed))
    last = read_progress(
        progress(observedMetrics={"moldau.undecodable.dead_lettered.1.t": {"records": 1}})
    )
    totals = RunTotals().plus(first).plus(first).plus(last)
    status = status_of("totals", Running(0), 0, totals=totals, last=last)
    assert (status.skipped, status.dead_lettered) == (8, 1)
    row = status.to_json()
    assert {name: row[name] for name in ("rows_in", "rows_out", "late_rows")} == {
        "rows_in": 40, "rows_out": 10, "late_rows": 9,
    }  # fmt: skip
    assert (row["batches"], row["total_rows_in"], row["total_rows_out"]) == (3, 120, 30)
    assert (row["skipped"], row["dead_lettered"]) == (8, 1)
    assert "decoding" not in row
    uncounted = totals.plus(read_progress(progress(sink={"numOutputRows": -1})))
    assert (uncounted.rows_out, uncounted.decoding) == (None, DecodeCounts(8, 1))


def test_a_batch_that_is_under_way() -> None:
    row = status_of("totals", Running(0), 0).to_json()
    assert (row["phase"], row["batch_rows_so_far"], row["batch_tasks"]) == (None, None, None)
    so_far = BatchSoFar(phase="Processing new data", rows=12, tasks_done=1, tasks=2)
    row = status_of("totals", Running(0), 0, so_far=so_far).to_json()
    assert (row["phase"], row["batch_rows_so_far"]) == ("Processing new data", 12)
    assert (row["batch_tasks_done"], row["batch_tasks"]) == (1, 2)


def test_the_size_of_a_state_is_that_of_its_files() -> None:
    rocksdb = {"memoryUsedBytes": 70, "customMetrics": {"rocksdbSstFileSize": 9000}}
    empty = {"memoryUsedBytes": 70, "customMetrics": {"rocksdbSstFileSize": 0}}
    memory = {"memoryUsedBytes": 200, "customMetrics": {}}
    assert read_progress(progress(stateOperators=[rocksdb, empty, memory])).state_bytes == 9200
