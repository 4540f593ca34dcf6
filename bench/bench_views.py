"""A view of a million keys: how fast it is filled and asked, and how much memory it takes."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.row import Row
from bench.view_reader import key_of
from moldau._native.records import Record
from moldau.records.batch import build_batch
from tests.conformance.brokers import RunningBroker, run_moldau
from tests.wire import Wire

TOPIC = "users"
RECORDS = 1_000_000
VALUE_BYTES = 100
BATCH_RECORDS = 1000
LOAD_GOAL = 100_000.0
LIMITS = {"p50_ms": 5.0, "p99_ms": 50.0, "peak_mb": 300.0}


def rows(records: int = RECORDS) -> list[Row]:
    """Measure one view in a process of its own."""
    with (
        tempfile.TemporaryDirectory(dir=".") as name,
        run_moldau(Path(name).resolve(), {"durability": "page-cache"}) as broker,
    ):
        _fill(broker, records)
        command = [sys.executable, "-m", "bench.view_reader", broker.bootstrap_servers, TOPIC]
        command += [str(Path(name) / "view"), str(records)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    seen: dict[str, float] = json.loads(done.stdout)
    keys = f"{records:,} keys of {VALUE_BYTES} B"
    return [
        _at_most(f"view, {keys}: pull by key, p50", seen, "p50_ms"),
        _at_most(f"view, {keys}: pull by key, p99", seen, "p99_ms"),
        _at_most(f"view, {keys}: peak memory of its process", seen, "peak_mb"),
        _load(f"view, {keys}: filled", seen["load_records_per_second"], "records/s"),
        _load(f"view, {keys}: filled", seen["load_records_per_cpu_second"], "records/CPU s"),
    ]


def _at_most(what: str, seen: dict[str, float], name: str) -> Row:
    limit, ours = LIMITS[name], seen[name]
    return Row(
        what, "goal", ours, limit, name.rpartition("_")[2].replace("mb", "MB"), limit / ours, 1.0
    )


def _load(what: str, rate: float, unit: str) -> Row:
    return Row(what, "goal", rate, LOAD_GOAL, unit, rate / LOAD_GOAL, 1.0)


def _fill(broker: RunningBroker, records: int) -> None:
    now = int(time.time() * 1000)
    value = bytes(range(VALUE_BYTES))
    with Wire(broker.host, broker.port) as wire:
        wire.create_topic(TOPIC)
        for first in range(0, records, BATCH_RECORDS):
            numbers = range(first, min(first + BATCH_RECORDS, records))
            batch = [Record(n - first, now, key_of(n).encode(), value) for n in numbers]
            assert not wire.produce(TOPIC, bytes(build_batch(batch))).error_code
