"""One of two running brokers, ours or Apache Kafka, and what clients do to it.

Each kind of load is a context that prepares it (a topic, filled where it is fetched) and gives a
`Drive`, which puts the broker under that load for so many seconds.
"""

import os
import re
import resource
import secrets
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path

from bench.load import Drive, Load, repeat
from bench.touched_memory import in_touched_memory
from moldau._native.records import Record
from moldau.protocol.framing import encode_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.records.batch import build_batch
from tests.conformance.brokers import RunningBroker
from tests.conformance.jars import run_java
from tests.share_members import configure
from tests.wire import LATEST, Wire

HERE = Path(__file__).parent
NATIVE = HERE.parent / "src/moldau/_native"
MB = 1 << 20
PARTITIONS = 4
RECORD_BYTES = 1000
SLICE_BYTES = 1024 * MB
"""Bytes that a load writes to one topic: more would measure the disk, not the page cache."""
FILLED_BYTES = 256 * MB
REQUESTS_MAX = 1 << 40
JAVA_RECORDS_MIN = 100_000
TIME = 1_700_000_000_000
TICKS = os.sysconf("SC_CLK_TCK")
PERFORMANCE = re.compile(r"([\d.]+) records/sec")


@dataclass(frozen=True)
class Programs:
    """The compiled clients."""

    directory: Path

    @cached_property
    def raw(self) -> str:
        return self._compile("raw_load")

    @cached_property
    def librdkafka(self) -> str:
        found = find_spec("confluent_kafka")
        assert found
        assert found.origin
        libraries = Path(found.origin).parents[1] / "confluent_kafka.libs"
        [library] = libraries.glob("librdkafka*.so*")
        return self._compile("librdkafka_load", str(library), f"-Wl,-rpath,{libraries}")

    def _compile(self, name: str, *more: str) -> str:
        program = str(self.directory / name)
        compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
        source = str(HERE / f"{name}.c")
        subprocess.run([compiler, "-O3", f"-I{NATIVE}", "-o", program, source, *more], check=True)
        return program


@dataclass
class Side:
    """One of the two brokers."""

    broker: RunningBroker
    programs: Programs
    topics: int = 0

    # The raw client.

    @contextmanager
    def raw_produce(self, size: int, connections: int, in_flight: int) -> Iterator[Drive]:
        """Send batches of `size`, several of them in flight on each connection."""
        batch = self._batch(size)

        def produce(seconds: float) -> Load:
            with self.topic() as topic:
                return self._raw_produce(topic, batch, connections, in_flight, 1, seconds)

        yield in_touched_memory(produce)

    @contextmanager
    def raw_fetch(self, size: int, fetch_bytes: int, connections: int) -> Iterator[Drive]:
        """Read hot segments, filled with batches of `size`, again and again."""
        batch = self._batch(size)
        records = _records(size)
        with self.topic() as topic:
            requests = FILLED_BYTES // batch.stat().st_size
            self._raw("produce", topic, PARTITIONS, PARTITIONS, 4, 1, 60, requests, batch)
            with self.wire() as wire:
                ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
            end = min(ends) - fetch_bytes // size * records  # every fetch is full
            place = ("fetch", topic, PARTITIONS, connections, 1, fetch_bytes)
            yield lambda seconds: self._raw(*place, seconds, REQUESTS_MAX, batch, records, end)

    @contextmanager
    def raw_relay(self, size: int) -> Iterator[Drive]:
        """Send a record with acks=all, and the next one when a long poll has received it."""

        def relay(seconds: float) -> Load:
            with self.topic(1) as topic:
                return self._raw("relay", topic, seconds, self._batch(size))

        yield relay

    def hostile(self) -> subprocess.Popen[bytes]:
        """Start sending frames that no client sends, until the process is ended."""
        port = str(self.broker.port)
        return subprocess.Popen([self.programs.raw, "hostile", port, str(1 << 30), "5"])

    # librdkafka.

    @contextmanager
    def librdkafka_produce(self, size: int, acks: str) -> Iterator[Drive]:
        """Send records as fast as the client can."""

        def produce(seconds: float) -> Load:
            with self.topic() as topic:
                return self._librdkafka_produce(topic, size, acks, seconds, SLICE_BYTES // size)

        yield in_touched_memory(produce)

    @contextmanager
    def librdkafka_consume(self, size: int, way: str = "consume") -> Iterator[Drive]:
        """Read a topic from its beginning; with `join` as the only member of a new group."""
        with self.topic() as topic:
            count = SLICE_BYTES // size
            self._librdkafka_produce(topic, size, "1", 600, count)
            place = (self.broker.bootstrap_servers, topic, PARTITIONS)

            def consume(_: float) -> Load:
                group = f"{topic}-{secrets.token_hex(4)}"
                return self._client(size, self.programs.librdkafka, way, *place, group, count)

            yield partial(repeat, consume)

    def _librdkafka_produce(
        self, topic: str, size: int, acks: str, seconds: float, count: int
    ) -> Load:
        place = (self.broker.bootstrap_servers, topic, PARTITIONS)
        program = self.programs.librdkafka
        load = self._client(size, program, "produce", *place, acks, size, seconds, count)
        with self.wire() as wire:
            ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
        assert sum(ends) == load.count, f"{sum(ends)} of {load.count} records arrived"
        return load

    @contextmanager
    def group_load(self, what: str, partitions: int, *more: object) -> Iterator[Drive]:
        """Have librdkafka's Python client do something with groups or transactions."""

        def drive(seconds: float) -> Load:
            with self.topic(partitions) as topic:
                return self.run_group_load(what, topic, seconds, *more)

        yield partial(repeat, drive)

    def run_group_load(self, what: str, topic: str, seconds: float, *more: object) -> Load:
        """Do so once, with a topic that stays."""
        command = (sys.executable, "-m", "bench.group_load", self.broker.bootstrap_servers)
        return self._client(0, *command, what, topic, seconds, *more)

    @contextmanager
    def shares(self, producers: int, consumers: int) -> Iterator[Drive]:
        """Produce with one record in flight each, while share consumers read and acknowledge."""
        with self.topic() as topic:
            with self.wire() as wire:
                configure(wire, topic, share_auto_offset_reset="earliest")
            command = ("bench.share_load", self.broker.bootstrap_servers, topic, str(consumers))
            with subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as reading:

                def count() -> int:
                    assert reading.stdin
                    assert reading.stdout
                    reading.stdin.write("\n")
                    reading.stdin.flush()
                    return int(reading.stdout.readline())

                def drive(seconds: float) -> Load:
                    before = count()
                    batch = self._batch(RECORD_BYTES)
                    load = self._raw_produce(topic, batch, producers, 1, -1, seconds)
                    return load + Load(received=count() - before)

                yield drive

    # Java.

    @contextmanager
    def java_produce(self, size: int, acks: str) -> Iterator[Drive]:
        """Run Kafka's own performance test."""
        rate = 0.0

        def produce(seconds: float) -> Load:
            nonlocal rate
            count = min(max(int(rate * seconds), JAVA_RECORDS_MIN), SLICE_BYTES // size)
            with self.topic() as topic:
                done, cpu, client_cpu = self._java(
                    "org.apache.kafka.tools.ProducerPerformance",
                    *("--bootstrap-server", self.broker.bootstrap_servers, "--topic", topic),
                    *("--num-records", str(count), "--record-size", str(size)),
                    *("--throughput", "-1", "--command-property", f"acks={acks}"),
                )
            found = PERFORMANCE.search(done.splitlines()[-1])
            assert found, done
            rate = float(found[1])
            return Load(count, count * size, count / rate, cpu, client_cpu)

        yield in_touched_memory(produce)

    @contextmanager
    def java_consume(self, size: int) -> Iterator[Drive]:
        """Run Kafka's own performance test, which reads through a group."""
        with self.topic() as topic:
            count = SLICE_BYTES // size
            self._librdkafka_produce(topic, size, "1", 600, count)

            def consume(_: float) -> Load:
                done, cpu, client_cpu = self._java(
                    "org.apache.kafka.tools.ConsumerPerformance",
                    *("--bootstrap-server", self.broker.bootstrap_servers, "--topic", topic),
                    *("--num-records", str(count), "--timeout", "60000"),
                )
                # It reads on to the end of the fetch that brings the last record.
                megabytes, rate, read = map(float, done.splitlines()[-1].split(",")[2:5])
                return Load(read, megabytes * MB, megabytes / rate, cpu, client_cpu)

            yield partial(repeat, consume)

    @contextmanager
    def java_transactions(self) -> Iterator[Drive]:
        """Commit transactions of ten records in three partitions, one after the other."""

        def commit(seconds: float) -> Load:
            with self.topic(3) as topic:
                program = str(HERE / "Transactions.java")
                place = (self.broker.bootstrap_servers, topic)
                done, cpu, client_cpu = self._java(program, *place, str(seconds))
            count, taken = map(float, done.split())
            return Load(count, 0, taken, cpu, client_cpu)

        yield commit

    # The broker itself.

    def cpu_seconds(self) -> float:
        """Return what the broker's process has used so far."""
        fields = Path(f"/proc/{self.broker.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_megabytes(self) -> float:
        status = Path(f"/proc/{self.broker.pid}/status").read_text()
        return float(status.partition("VmRSS:")[2].split()[0]) / 1024

    def connect(self, count: int) -> list[socket.socket]:
        """Open connections that say hello and nothing more."""
        hello = b"".join(
            encode_request(ApiVersionsRequest(), 0, correlation_id=1, client_id="idle")
        )
        connections = []
        for _ in range(count):
            connection = socket.create_connection((self.broker.host, self.broker.port), 30)
            connection.sendall(hello)
            assert connection.recv(4096)
            connections.append(connection)
        return connections

    @contextmanager
    def topic(self, partitions: int = PARTITIONS) -> Iterator[str]:
        """Create a topic; its files go at once when it is deleted, before the next measurement."""
        self.topics += 1
        name = f"bench-{self.topics}"
        with self.wire() as wire:
            # Of whatever time its records are: they are kept until then.
            configs = {"file.delete.delay.ms": "1", "retention.ms": "-1"}
            wire.create_topic(name, partitions, configs)
        yield name
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
        with self.wire() as wire:
            wire.call(request, DeleteTopicsResponse, 6)

    def wire(self) -> Wire:
        """Return a connection that speaks the protocol as it is told."""
        return Wire(self.broker.host, self.broker.port)

    # Clients as processes.

    def _batch(self, size: int) -> Path:
        path = self.programs.directory / f"batch-{size}"
        if not path.exists():
            count = _records(size)
            room = (size - 61) // count - 12
            records = [Record(n, TIME, None, b"v" * room, []) for n in range(count)]
            path.write_bytes(build_batch(records))
        return path

    def _raw_produce(
        self, topic: str, batch: Path, connections: int, in_flight: int, acks: int, seconds: float
    ) -> Load:
        requests = max(SLICE_BYTES // batch.stat().st_size, 1)
        place = (topic, PARTITIONS, connections, in_flight)
        return self._raw("produce", *place, acks, seconds, requests, batch)

    def _raw(self, *arguments: object) -> Load:
        command = (self.programs.raw, arguments[0], self.broker.port, *arguments[1:])
        done, cpu, client_cpu = self._process(*command)
        count, size, seconds, p50, p99, _ = map(float, done.split())
        return Load(count, size, seconds, cpu, client_cpu, p50, p99)

    def _client(self, size: int, *command: object) -> Load:
        """Run a client that prints how many records (of `size`) there were, and the seconds."""
        done, cpu, client_cpu = self._process(*command)
        count, seconds = map(float, done.split())
        return Load(count, size * count, seconds, cpu, client_cpu)

    def _process(self, *command: object) -> tuple[str, float, float]:
        """Run a client; return what it printed, and the CPU time of the broker and its own."""
        return self._watch(
            lambda: subprocess.run(
                [str(word) for word in command], capture_output=True, text=True, check=False
            )
        )

    def _java(self, program: str, *arguments: str) -> tuple[str, float, float]:
        return self._watch(
            lambda: run_java(self.programs.directory, program, *arguments, options=())
        )

    def _watch(
        self, run: Callable[[], "subprocess.CompletedProcess[str]"]
    ) -> tuple[str, float, float]:
        cpu, client_cpu = self.cpu_seconds(), _children_seconds()
        done = run()
        spent = self.cpu_seconds() - cpu, _children_seconds() - client_cpu
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, *spent


def _children_seconds() -> float:
    """Return the CPU time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _records(size: int) -> int:
    return max(size // RECORD_BYTES, 1)
