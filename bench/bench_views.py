"""A view of a million keys: how fast it is filled and asked, and how much memory it takes.

In a process of its own, and in a SQL server that is asked over HTTP.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import view_server
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


def rows(records: int = RECORDS) -> Iterator[Row]:
    """Measure one view in a process of its own, and one in a server."""
    keys = f"{records:,} keys of {VALUE_BYTES} B"
    with (
        tempfile.TemporaryDirectory(dir=".") as name,
        run_moldau(Path(name).resolve(), {"durability": "page-cache"}) as broker,
    ):
        folder = Path(name).resolve()
        _fill(broker, records)
        command = [sys.executable, "-m", "bench.view_reader", broker.bootstrap_servers, TOPIC]
        command += [str(folder / "view"), str(records)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        yield from _of_view(f"view, {keys}", json.loads(done.stdout))
        asked = view_server.measure(broker.bootstrap_servers, TOPIC, folder, records)
        yield from _of_server(f"SQL server, {keys}", asked)


def _of_view(what: str, seen: dict[str, float]) -> list[Row]:
    return [
        _at_most(f"{what}: pull by key, p50", "p50_ms", seen["p50_ms"]),
        _at_most(f"{what}: pull by key, p99", "p99_ms", seen["p99_ms"]),
        _at_most(f"{what}: peak memory of its process", "peak_mb", seen["peak_mb"]),
        _load(f"{what}: filled", seen["load_records_per_second"], "records/s"),
        _load(f"{what}: filled", seen["load_records_per_cpu_second"], "records/CPU s"),
    ]


def _of_server(what: str, seen: dict[str, float]) -> list[Row]:
    ways = {"kept": "on one connection", "fresh": "a connection for each"}
    return [
        *(
            _at_most(f"{what}: pull queries, {way}, {name[:3]}", name, seen[f"{kind}_{name}"])
            for kind, way in ways.items()
            for name in ("p50_ms", "p99_ms")
        ),
        _at_most(f"{what}: peak memory of its process", "peak_mb", seen["peak_mb"]),
    ]


def _at_most(what: str, name: str, ours: float) -> Row:
    limit, unit = LIMITS[name], name.rpartition("_")[2].replace("mb", "MB")
    return Row(what, "goal", ours, limit, unit, limit / ours, 1.0)


def _load(what: str, rate: float, unit: str) -> Row:
    return Row(what, "goal", rate, LOAD_GOAL, unit, rate / LOAD_GOAL, 1.0)


def _fill(broker: RunningBroker, records: int) -> None:
    now = int(time.time() * 1000)
    value = json.dumps({"city": "Praha", "note": "as it was"}).encode().ljust(VALUE_BYTES)
    with Wire(broker.host, broker.port) as wire:
        wire.create_topic(TOPIC)
        for first in range(0, records, BATCH_RECORDS):
            numbers = range(first, min(first + BATCH_RECORDS, records))
            batch = [Record(n - first, now, key_of(n).encode(), value) for n in numbers]
            assert not wire.produce(TOPIC, bytes(build_batch(batch))).error_code
