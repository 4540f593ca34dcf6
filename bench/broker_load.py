"""What is done to a running broker, ours or Apache Kafka, and what that took."""

import os
import re
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

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
from tests.wire import LATEST, Wire

HERE = Path(__file__).parent
NATIVE = HERE.parent / "src/moldau/_native"
PARTITIONS = 4
RECORD_BYTES = 1000
TIME = 1_700_000_000_000
TICKS = os.sysconf("SC_CLK_TCK")
END_TO_END_MEAN = re.compile(r"Avg latency: ([\d.]+) ms")
END_TO_END_P99 = re.compile(r"99th = ([\d.]+)")
PERFORMANCE = re.compile(r"([\d.]+) records/sec .*?([\d.]+) ms avg latency")


class Load(NamedTuple):
    """What one run took, as far as its client tells."""

    megabytes_per_second: float = 0.0
    cpu_seconds_per_gb: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0
    mean_ms: float = 0.0
    per_second: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


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

    def raw_produce(self, size: int, connections: int, in_flight: int, total: int) -> Load:
        """Send `total` bytes in batches of `size`."""
        with self.topic() as topic:
            return self._raw_produce(topic, self._batch(size), connections, in_flight, total)

    def _raw_produce(
        self, topic: str, batch: Path, connections: int, in_flight: int, total: int
    ) -> Load:
        count = max(total // batch.stat().st_size, 1)
        place = (topic, PARTITIONS, connections, in_flight)
        return self._raw("produce", *place, 1, count, batch)

    def raw_fetch(self, size: int, fetch_bytes: int, connections: int, total: int) -> Load:
        """Read `total` bytes of hot segments, again and again from the beginning."""
        batch = self._batch(size)
        with self.topic() as topic:
            self._raw_produce(topic, batch, PARTITIONS, 4, 256 << 20)
            with self.wire() as wire:
                ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
            place = (topic, PARTITIONS, connections, 1)
            records = _records(size)
            end = min(ends) - fetch_bytes // size * records  # every fetch is full
            return self._raw(
                "fetch", *place, fetch_bytes, total // fetch_bytes, batch, records, end
            )

    def hostile(self) -> subprocess.Popen[bytes]:
        """Start sending frames that no client sends, until the process is ended."""
        port = str(self.broker.port)
        return subprocess.Popen([self.programs.raw, "hostile", port, str(1 << 30), "5"])

    def librdkafka_produce(self, size: int, acks: str, total: int) -> Load:
        with self.topic() as topic:
            return self._librdkafka_produce(topic, size, acks, total // size)

    def librdkafka_consume(self, size: int, total: int) -> Load:
        with self.topic() as topic:
            count = total // size
            self._librdkafka_produce(topic, size, "1", count)
            place = (self.broker.bootstrap_servers, topic, PARTITIONS)
            return self._timed(total, self.programs.librdkafka, "consume", *place, count)

    def librdkafka_join(self, size: int, total: int) -> Load:
        """Read as the only member of a group that is new."""
        with self.topic() as topic:
            count = total // size
            self._librdkafka_produce(topic, size, "1", count)
            place = (self.broker.bootstrap_servers, topic, PARTITIONS)
            return self._timed(total, self.programs.librdkafka, "join", *place, count)

    def _librdkafka_produce(self, topic: str, size: int, acks: str, count: int) -> Load:
        place = (self.broker.bootstrap_servers, topic, PARTITIONS)
        program = self.programs.librdkafka
        load = self._timed(size * count, program, "produce", *place, acks, size, count)
        with self.wire() as wire:
            ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
        assert sum(ends) == count, f"{sum(ends)} of {count} records arrived"
        return load

    def java_produce(self, size: int, acks: str, count: int) -> Load:
        """Run Kafka's own performance test."""
        with self.topic() as topic:
            cpu = self.cpu_seconds()
            done = self._java(
                "org.apache.kafka.tools.ProducerPerformance",
                *("--bootstrap-server", self.broker.bootstrap_servers, "--topic", topic),
                *("--num-records", str(count), "--record-size", str(size), "--throughput", "-1"),
                *("--command-property", f"acks={acks}"),
            )
            cpu = self.cpu_seconds() - cpu
        found = PERFORMANCE.search(done.splitlines()[-1])
        assert found, done
        rate = float(found[1]) * size / 1e6
        return Load(rate, cpu / (size * count / 1e9), mean_ms=float(found[2]))

    def java_consume(self, size: int, count: int) -> Load:
        """Run Kafka's own performance test, which reads through a group."""
        with self.topic() as topic:
            self._librdkafka_produce(topic, size, "1", count)
            cpu = self.cpu_seconds()
            done = self._java(
                "org.apache.kafka.tools.ConsumerPerformance",
                *("--bootstrap-server", self.broker.bootstrap_servers, "--topic", topic),
                *("--num-records", str(count), "--timeout", "60000"),
            )
            cpu = self.cpu_seconds() - cpu
        rate = float(done.splitlines()[-1].split(",")[3])
        return Load(rate * (1 << 20) / 1e6, cpu / (size * count / 1e9))

    def java_latency(self, count: int, size: int) -> Load:
        """Send one record after the other, each when the one before was received."""
        with self.topic(1) as topic:
            place = (self.broker.bootstrap_servers, topic)
            done = self._java(
                "org.apache.kafka.tools.EndToEndLatency",
                *("--bootstrap-server", place[0], "--topic", place[1]),
                *("--num-records", str(count), "--producer-acks", "all"),
                *("--record-size", str(size)),
            )
        mean, p99 = END_TO_END_MEAN.search(done), END_TO_END_P99.search(done)
        assert mean, done
        assert p99, done
        return Load(mean_ms=float(mean[1]), p99_us=float(p99[1]) * 1000)

    def java_transactions(self, count: int) -> Load:
        """Commit transactions of ten records in three partitions, one after the other."""
        with self.topic(3) as topic:
            program = str(HERE / "Transactions.java")
            done = self._java(program, self.broker.bootstrap_servers, topic, str(count))
        return Load(per_second=count / float(done))

    def group_load(self, *arguments: object) -> Load:
        """Have librdkafka's Python client do something; it says how many and how long."""
        cpu = self.cpu_seconds()
        command = [sys.executable, "-m", "bench.group_load", self.broker.bootstrap_servers]
        done = subprocess.run(
            [*command, *map(str, arguments)], capture_output=True, text=True, check=False
        )
        cpu = self.cpu_seconds() - cpu
        assert done.returncode == 0, done.stderr
        count, seconds = map(float, done.stdout.split())
        return Load(per_second=count / seconds, seconds=seconds, cpu_seconds=cpu)

    def _java(self, program: str, *arguments: str) -> str:
        done = run_java(self.programs.directory, program, *arguments, options=())
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

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

    def _batch(self, size: int) -> Path:
        path = self.programs.directory / f"batch-{size}"
        if not path.exists():
            count = _records(size)
            room = (size - 61) // count - 12
            records = [Record(n, TIME, None, b"v" * room, []) for n in range(count)]
            path.write_bytes(build_batch(records))
        return path

    def _raw(self, *arguments: object) -> Load:
        command = [self.programs.raw, arguments[0], self.broker.port, *arguments[1:]]
        cpu = self.cpu_seconds()
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False
        )
        cpu = self.cpu_seconds() - cpu
        assert done.returncode == 0, done.stderr
        _, size, seconds, p50, p99, _ = map(float, done.stdout.split())
        return Load(size / seconds / 1e6, cpu / (size / 1e9), p50, p99)

    def _timed(self, size: int, *command: object) -> Load:
        cpu = self.cpu_seconds()
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False
        )
        cpu = self.cpu_seconds() - cpu
        assert done.returncode == 0, done.stderr
        return Load(size / float(done.stdout) / 1e6, cpu / (size / 1e9))


def _records(size: int) -> int:
    return max(size // RECORD_BYTES, 1)
