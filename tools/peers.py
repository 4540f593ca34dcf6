"""`python -m tools.peers`: fetch and build what tests run beside ours, into .cache.

Jars from Maven, kafkajs from npm, franz-go, an older PySpark, and our Java programs, compiled. Each
is made when it is first asked for, by one process at a time; `make test` asks for all of them
before its tests begin.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pyspark

from moldau.pipelines.java import use_java
from moldau.pipelines.spark_version import SPARK_MIN
from tools.bootstrap import require

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
CONFORMANCE = ROOT / "tests/conformance"
INSTALL_SECONDS_MAX = 900

JARS = CACHE / "jars"
CLIENT = (
    "org.apache.kafka:kafka-clients:4.4.0",
    "org.apache.kafka:kafka-server-common:4.4.0",
    "at.yawk.lz4:lz4-java:1.10.2",
    "com.github.luben:zstd-jni:1.5.6-10",
    "org.slf4j:slf4j-api:1.7.36",
    "org.xerial.snappy:snappy-java:1.1.10.7",
)

SERVER_FOLDER = CACHE / "apache-kafka-4.3.1"
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

OLDER_SPARK = ".".join(map(str, SPARK_MIN))


@cache
def client_classpath() -> str:
    """Return the class path of the Java client, 4.4.0."""
    return _jars(CLIENT)


@cache
def server_classpath() -> str:
    """Return the class path of Apache Kafka's server and tools, 4.3.1."""
    folder = made_once(SERVER_FOLDER, _fetch_server)
    return os.pathsep.join(sorted(map(str, folder.glob("*.jar"))))


@cache
def streams_classpath() -> str:
    """Return the class path of Kafka Streams, 4.3.1, and what it runs on."""
    return os.pathsep.join((server_classpath(), _jars(STREAMS)))


@cache
def spark_connector() -> str:
    """Return the jars of Spark's own Kafka connector, as `spark.jars` wants them."""
    return _jars(SPARK_CONNECTOR).replace(os.pathsep, ",")


CLASSPATHS: dict[str, Callable[[], str]] = {
    "Client": client_classpath,
    "Compact": server_classpath,
    "ConsumerGroups": client_classpath,
    "FeatureLevels": client_classpath,
    "GroupMembers": client_classpath,
    "Groups": client_classpath,
    "HoldLock": client_classpath,
    "ImageOracle": server_classpath,
    "LogClient": server_classpath,
    "LogFormats": server_classpath,
    "LogMoves": server_classpath,
    "Murmur2": client_classpath,
    "ProducerVerdicts": server_classpath,
    "RecordFiles": client_classpath,
    "SettingValues": server_classpath,
    "ShareReader": client_classpath,
    "TwoPhase": client_classpath,
    "WarmTools": server_classpath,
    "WordCount": streams_classpath,
}
"""The programs in tests/conformance/java, and whose classes each of them runs on."""


@cache
def java_classpath(program: str) -> str:
    """Return the class path of one of our Java programs, compiled."""
    source = CONFORMANCE / "java" / f"{program}.java"
    path = CLASSPATHS[program]()

    def compile_program(made: Path) -> None:
        require("javac")
        _run("javac", "-nowarn", "-cp", path, "-d", str(made), str(source))

    key = key_of(source.read_bytes(), path.encode())
    return os.pathsep.join(
        (path, str(made_once(CACHE / "java" / f"{program}-{key}", compile_program)))
    )


@cache
def kafkajs() -> Path:
    """Return the folder of kafkajs, with the codecs that its users plug in."""
    package = CONFORMANCE / "js/package.json"

    def install(made: Path) -> None:
        require("node", "npm")
        made.mkdir()
        shutil.copy(package, made)
        _run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", cwd=made)

    return made_once(CACHE / f"kafkajs-{key_of(package.read_bytes())}", install) / "node_modules"


@cache
def franz_go(package: str = ".") -> Path:
    """Return a program of ours on franz-go, built with the modules that go.sum names."""
    folder = CONFORMANCE / "go"
    sources = sorted([*folder.rglob("*.go"), *folder.glob("go.*")])

    def build(made: Path) -> None:
        require("go")
        _run("go", "build", "-o", str(made), package, cwd=folder)

    key = key_of(package.encode(), *(source.read_bytes() for source in sources))
    return made_once(CACHE / f"franz-go-{key}", build)


@cache
def older_python() -> str:
    """Return a Python with the oldest PySpark that the connector works with: 0.5 GB."""
    folder = CACHE / f"pyspark-{OLDER_SPARK}"
    python = folder / "bin/python"

    def install(made: Path) -> None:
        venv.create(folder, clear=True, with_pip=True)
        _run(str(python), "-m", "pip", "install", "-q", f"pyspark=={OLDER_SPARK}.*")
        # Whatever else is needed comes from here, behind what is there.
        here = sysconfig.get_path("purelib")
        there = next((folder / "lib").glob("python*/site-packages"))
        (there / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
        made.write_text(sys.version)

    made_once(CACHE / f"pyspark-{OLDER_SPARK}.complete", install)
    return str(python)


SPARK_PROGRAM = """
from pyspark.sql import SparkSession, functions as F
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
session.conf.set("spark.sql.shuffle.partitions", "2")
rows = session.range(100).selectExpr("id", "id % 2 AS k", "to_json(struct(id)) AS text")
rows.selectExpr("*", "from_json(text, 'id bigint') AS read").groupBy("k").count().toArrow()
rows.join(rows.filter("text LIKE '%7%'").select("id"), "id").orderBy("id").collect()
stream = session.readStream.format("rate").load().withWatermark("timestamp", "1 second")
counts = stream.groupBy(F.window("timestamp", "1 second")).count()
query = counts.writeStream.format("memory").queryName("counts").outputMode("append").start()
query.awaitTermination(5)
query.stop()
session.stop()
"""


@cache
def spark_options() -> str:
    """Return Java options with which Spark starts in a quarter of the time; for SPARK_SUBMIT_OPTS.

    Its classes come from an archive, and are compiled quickly instead of well.
    """
    quick = "-XX:TieredStopAtLevel=1 -Xlog:disable -Xlog:all=error:stderr"
    use_java()
    java = [os.environ["MOLDAU_JAVA"], "-version"]
    version = subprocess.run(java, capture_output=True, check=True).stderr

    def archive(made: Path) -> None:
        options = f"{quick} -XX:ArchiveClassesAtExit={made}"
        _run(sys.executable, "-c", SPARK_PROGRAM, SPARK_SUBMIT_OPTS=options)

    key = key_of(version, pyspark.__file__.encode(), pyspark.__version__.encode())
    return f"{quick} -XX:SharedArchiveFile={made_once(CACHE / f'spark-{key}.jsa', archive)}"


def main() -> None:
    """Have all of it, but for the older PySpark: only `make soak` runs that."""
    spark_connector()
    for program in CLASSPATHS:
        java_classpath(program)
    kafkajs()
    franz_go()
    franz_go("./copier")
    # It starts a node, as tests do.
    from tests.conformance.apache_kafka import shared_classes  # noqa: PLC0415

    shared_classes()
    spark_options()


def _jars(artifacts: Sequence[str]) -> str:
    return os.pathsep.join(str(_jar(artifact)) for artifact in artifacts)


def _jar(artifact: str) -> Path:
    _, name, version = artifact.split(":")

    def fetch(made: Path) -> None:
        require("mvn")
        command = ("mvn", "-q", "-U", "dependency:copy", f"-Dartifact={artifact}")
        _run(*command, f"-DoutputDirectory={made.parent}")

    return made_once(JARS / f"{name}-{version}.jar", fetch)


def _fetch_server(made: Path) -> None:
    require("mvn")
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*artifact.split(":"))
        for artifact in SERVER
    )
    pom = made.parent / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>moldau</groupId>"
        "<artifactId>peer</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    command = ("mvn", "-q", "-U", "-f", str(pom), "dependency:copy-dependencies")
    _run(*command, f"-DoutputDirectory={made}")


def made_once(path: Path, make: Callable[[Path], None]) -> Path:
    """Return a file or folder of the cache.

    It is made once, by one process at a time, and in its place only when it is complete.
    """
    if path.exists():
        return path
    locks = CACHE / "locks"
    for folder in (path.parent, locks):
        folder.mkdir(parents=True, exist_ok=True)
    with (locks / path.name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            print(f"moldau: making {path.relative_to(ROOT)}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as temporary:
                made = Path(temporary) / path.name
                make(made)
                made.rename(path)
    return path


def key_of(*parts: bytes) -> str:
    """Return a name for what is made of these."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _run(*command: str, cwd: Path = ROOT, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise RuntimeError(f"{' '.join(command)} failed:\n{said[-2000:]}")


if __name__ == "__main__":
    main()
