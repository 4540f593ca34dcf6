"""Apache Kafka itself, to compare with: one node in a temporary directory, on free ports.

with apache_kafka(tmp_path) as kafka:
    kafka.tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", "clicks")
kafka.data_directory  # what it left behind, after a clean shutdown
"""

import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from moldau.kernel.ids import TopicId
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from moldau.protocol.schema import Message
from tests.conformance.jars import FRUGAL, run_java
from tools.peers import CACHE, key_of, made_once, server_classpath

CLUSTER_ID = "MoldauMoldauMoldauMol0"
READY_SECONDS_MAX = 300
STOP_SECONDS_MAX = 120
PORTS = (12_000, 32_000)
TOOL_SECONDS_MAX = 120

_LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'java' / 'log4j2.properties'}"

# Of the Java machine itself, which has much to say of archives.
_SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")

AnyResponse = TypeVar("AnyResponse", bound=Message)


@dataclass
class ApacheKafka:
    """A formatted node; `start` and `stop` may be called in turn."""

    directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = FRUGAL
    advertised: str | None = None
    """Where clients are told to go instead, as to a proxy; the node itself goes straight."""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def data_directory(self) -> Path:
        """Where the node keeps its logs."""
        return self.directory / "data"

    @property
    def properties(self) -> Path:
        """The node's server.properties."""
        return self.directory / "server.properties"

    @property
    def bootstrap_servers(self) -> str:
        """What clients are told to connect to."""
        return f"127.0.0.1:{self.port}"

    def write_properties(self) -> None:
        """Choose free ports and write server.properties for a broker that is its own quorum."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port, controller_port, inner_port = _free_ports(3)
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},"
            f"CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.settings,
        }
        if self.advertised is not None:
            inner = f"INNER://127.0.0.1:{inner_port}"
            properties |= {
                "listeners": f"{properties['listeners']},{inner}",
                "advertised.listeners": f"PLAINTEXT://{self.advertised},{inner}",
                "inter.broker.listener.name": "INNER",
                "listener.security.protocol.map": ",".join(
                    f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", "INNER")
                ),
            }
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        self.properties.write_text("".join(lines))

    def format(self, *arguments: str) -> None:
        """Format the data directory; arguments beyond the usual ones are handed through."""
        self.java(
            "kafka.tools.StorageTool",
            "format",
            "--standalone",
            "-t",
            CLUSTER_ID,
            "-c",
            str(self.properties),
            *arguments,
        )

    def start(self) -> None:
        """Start the node and wait until it answers as a member of its cluster."""
        with (self.directory / "kafka.out").open("ab") as output:
            options = [*self.options, *_quick_start(self.options), _LOGGING]
            command = ["java", *options, "-cp", server_classpath(), "kafka.Kafka"]
            self.process = subprocess.Popen(
                [*command, str(self.properties)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"Apache Kafka did not start:\n{self.output()[-5000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Shut the node down cleanly; kill it if it does not end."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"Apache Kafka did not stop:\n{self.output()[-5000:]}") from None
        self.process = None

    def kill(self) -> None:
        """End the node's process at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def output(self) -> str:
        """Return what the node printed, its log, since it was formatted."""
        return (self.directory / "kafka.out").read_text(errors="replace")

    def java(self, class_name: str, *arguments: str) -> str:
        """Run a Java program with Kafka's class path; return what it printed."""
        done = run_java(self.directory, class_name, *arguments)
        assert done.returncode == 0, f"{class_name} {arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def tool(self, class_name: str, *arguments: str) -> str:
        """Run one of Kafka's command line tools against this node."""
        return self.java(class_name, "--bootstrap-server", self.bootstrap_servers, *arguments)

    def ask(self, request: Message, response: type[AnyResponse], version: int) -> AnyResponse:
        """Send one request on a connection of its own; return the answer."""
        with socket.create_connection(("127.0.0.1", self.port), TOOL_SECONDS_MAX) as connection:
            connection.sendall(
                b"".join(encode_request(request, version, correlation_id=7, client_id="moldau"))
            )
            frame = _receive(connection, int.from_bytes(_receive(connection, 4)))
        correlation_id, answer = decode_response(frame, response, version)
        assert correlation_id == 7
        return answer

    def create_topic(self, name: str, configs: Mapping[str, str]) -> TopicId:
        """Create a topic with one partition, and wait until the broker knows it."""
        topic = CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=configs[key]) for key in configs],
        )
        answer = self.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        known = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        deadline = time.monotonic() + TOOL_SECONDS_MAX
        while self.ask(known, MetadataResponse, 9).topics[0].error_code:
            assert time.monotonic() < deadline, f"{name} does not come"
            time.sleep(0.05)
        return TopicId(answer.topics[0].topic_id)

    def _is_ready(self) -> bool:
        try:
            self.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
            cluster = self.ask(DescribeClusterRequest(), DescribeClusterResponse, 0)
        except OSError:
            return False
        return bool(cluster.brokers)


@contextmanager
def apache_kafka(
    directory: Path,
    settings: Mapping[str, str] | None = None,
    *format_arguments: str,
    options: Sequence[str] = FRUGAL,
    advertised: str | None = None,
) -> Iterator[ApacheKafka]:
    """Format and start a node; it is stopped at the end, and killed if that fails."""
    kafka = ApacheKafka(directory, settings or {}, options, advertised)
    kafka.write_properties()
    kafka.format(*format_arguments)
    kafka.start()
    try:
        yield kafka
        kafka.stop()
    finally:
        kafka.kill()


@cache
def shared_classes() -> Path:
    """Return an archive of the classes that a node loads: with it, a start takes half as long."""
    version = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    key = key_of(version, server_classpath().encode())
    return made_once(CACHE / f"apache-kafka-{key}.jsa", _archive_classes)


def _archive_classes(made: Path) -> None:
    options = (*FRUGAL, f"-XX:ArchiveClassesAtExit={made}", *_SILENT)
    with apache_kafka(made.parent / "node", options=options):
        pass


def _quick_start(options: Sequence[str]) -> tuple[str, ...]:
    return (f"-XX:SharedArchiveFile={shared_classes()}", *_SILENT) if options is FRUGAL else ()


def _free_ports(count: int) -> list[int]:
    """Choose ports that are free, and that no client is given meanwhile.

    They are below those that the system gives to whoever asks for any, and drawn, so that two
    workers of one run hardly ever draw the same.
    """
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.randrange(*PORTS)
        with socket.socket() as bound, suppress(OSError):
            bound.bind(("127.0.0.1", port))
            if port not in chosen:
                chosen.append(port)
    return chosen


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("the connection ended inside a frame")
        data += piece
    return bytes(data)
