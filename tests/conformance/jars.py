"""Apache Kafka's jars: the Java client with its compression libraries, and the whole server."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "jars"
CLIENT = (
    "org.apache.kafka:kafka-clients:4.4.0",
    "org.apache.kafka:kafka-server-common:4.4.0",
    "at.yawk.lz4:lz4-java:1.10.2",
    "com.github.luben:zstd-jni:1.5.6-10",
    "org.slf4j:slf4j-api:1.7.36",
    "org.xerial.snappy:snappy-java:1.1.10.7",
)

SERVER_FOLDER = ROOT / ".cache" / "apache-kafka-4.3.1"
# With log4j-slf4j-impl, because Kafka brings the API that log4j-slf4j2-impl does not bind to.
SERVER = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    "org.apache.kafka:kafka-tools:4.3.1",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.1",
)

# Kafka Streams for the server's client; the newest client has no release of it yet.
STREAMS = ("org.apache.kafka:kafka-streams:4.3.1", "org.rocksdb:rocksdbjni:10.1.3")

# Spark's own connector: what of it is published together works on PySpark 4.2 and 4.3.
SPARK_CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


@cache
def client_classpath() -> str:
    """Return the class path of the Java client, fetched with Maven where the cache lacks it.

    Skips the test when there is no Java, or no Maven that could fetch what is missing.
    """
    if shutil.which("java") is None:
        pytest.skip("there is no java on this machine")
    return _fetched(CLIENT)


@cache
def streams_classpath() -> str:
    """Return the class path of Kafka Streams; skips the test as `server_classpath` does."""
    return os.pathsep.join((server_classpath(), _fetched(STREAMS)))


@cache
def spark_connector() -> str:
    """Return the jars of Spark's own Kafka connector, as `spark.jars` wants them."""
    return _fetched(SPARK_CONNECTOR).replace(os.pathsep, ",")


def _fetched(artifacts: Sequence[str]) -> str:
    paths = []
    for artifact in artifacts:
        _, name, version = artifact.split(":")
        path = FOLDER / f"{name}-{version}.jar"
        if not path.exists():
            _fetch(artifact)
        paths.append(str(path))
    return os.pathsep.join(paths)


def _fetch(artifact: str) -> None:
    if shutil.which("mvn") is None:
        pytest.skip(f"{artifact} is not in {FOLDER}, and there is no mvn to fetch it with")
    command = ("mvn", "-q", "-U", "dependency:copy", f"-Dartifact={artifact}")
    subprocess.run([*command, f"-DoutputDirectory={FOLDER}"], check=True, timeout=300)


@cache
def server_classpath() -> str:
    """Return the class path of Apache Kafka's server and tools, a wildcard as Java knows it.

    Skips the test when there is no Java, or no Maven that could fetch what is missing.
    """
    if shutil.which("java") is None:
        pytest.skip("there is no java on this machine")
    if not SERVER_FOLDER.is_dir():
        if shutil.which("mvn") is None:
            pytest.skip(f"there is no {SERVER_FOLDER}, and no mvn to fetch it with")
        _fetch_server()
    return f"{SERVER_FOLDER}/*"


def _fetch_server() -> None:
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*artifact.split(":"))
        for artifact in SERVER
    )
    SERVER_FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SERVER_FOLDER.parent) as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>moldau</groupId>"
            "<artifactId>peer</artifactId><version>1</version>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        command = ("mvn", "-q", "-U", "-f", str(pom), "dependency:copy-dependencies")
        # In place only when complete, so that a run that was cut short leaves nothing half done.
        subprocess.run([*command, f"-DoutputDirectory={folder}/lib"], check=True, timeout=600)
        (Path(folder) / "lib").rename(SERVER_FOLDER)


def run(program: str, *arguments: str, server: bool = False) -> str:
    """Run one of the programs in tests/conformance/java; return what it printed.

    `server`: on the classes of the server and its client (4.3.1), not those of the newest client.
    """
    source = Path(__file__).parent / "java" / f"{program}.java"
    done = subprocess.run(
        [
            "java",
            "-cp",
            server_classpath() if server else client_classpath(),
            str(source),
            *arguments,
        ],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
        text=True,
    )
    return done.stdout
