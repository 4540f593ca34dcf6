"""`python -m tools.soak [NAME ...]`: run the long proofs, note the results in docs/proofs/.

Each proof has one row, replaced when it runs again; a proof that fails says so in its row.
"""

import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

RESULTS = Path("docs/proofs")
HEADER = """\
# Proofs of the {subject}

Written by `make soak`: the long proofs at full counts, a row for the last run of each. `make test`
runs a sample of every one.

| proof | what ran | result | seconds | date | commit | machine |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """Tests with the environment that raises their counts."""

    name: str
    tests: tuple[str, ...]
    environment: dict[str, str]
    subject: str = "log"
    """What it is about: the page that has its row."""


CRASHES = "tests/proofs/test_log_crashes.py"
SQL_KILLS = "tests/spark/test_sql_kills.py::test_a_killed_server_goes_on"
PROOFS = (
    Proof(
        "kill -9 of a writer",
        (f"{CRASHES}::test_what_was_acknowledged_survives_kill_9",),
        {"MOLDAU_KILLS": "200"},
    ),
    Proof(
        "power loss, ext4 on a loop file",
        (f"{CRASHES}::test_what_was_acknowledged_survives_power_losses",),
        {"MOLDAU_POWER_LOSSES": "50"},
    ),
    Proof(
        "failing syncs, full volumes",
        ("tests/integration/test_log_faults.py", "tests/integration/test_disk_faults.py"),
        {"MOLDAU_KILLS": "50", "MOLDAU_POWER_LOSSES": "20"},
    ),
    Proof(
        "model of the log", ("tests/unit/log/test_log_model.py",), {"MOLDAU_LOG_EXAMPLES": "2000"}
    ),
    Proof(
        "bugs planted in the log",
        ("tests/unit/log/test_planted_bugs.py",),
        {"MOLDAU_PLANT_EXAMPLES": "2000"},
    ),
    Proof(
        "model of a log directory",
        ("tests/unit/log/test_directory_model.py",),
        {"MOLDAU_DIRECTORY_SEEDS": "5000"},
    ),
    Proof(
        "model of logs that move",
        ("tests/unit/log/test_move_model.py",),
        {"MOLDAU_MOVING_SEEDS": "5000"},
    ),
    Proof(
        "properties of the unit tests",
        ("tests/unit",),
        {
            "MOLDAU_PROPERTY_EXAMPLES": "1000",
            "MOLDAU_EXAMPLES": "50",
            "MOLDAU_SWAP_SEEDS": "20",
        },
        "broker",
    ),
    Proof(
        "hostile frames",
        ("tests/integration/test_hostile_frames.py",),
        {"MOLDAU_HOSTILE_FRAMES": "100000"},
        "broker",
    ),
    Proof(
        "10,000 partitions come and go",
        ("tests/conformance/test_many_partitions.py",),
        {"MOLDAU_PARTITIONS": "10000"},
        "broker",
    ),
    Proof(
        "a slow reader beside fast ones",
        ("tests/conformance/test_slow_reader.py",),
        {},
        "broker",
    ),
    Proof(
        "fetches that leave from files: slow, aborted and pipelined clients, cold data",
        ("tests/integration/test_file_regions.py",),
        {"MOLDAU_FETCH_CLIENTS": "1000", "MOLDAU_COLD_BYTES": "20000000000"},
        "broker",
    ),
    Proof(
        "model of the producer's outbox",
        ("tests/unit/client/test_outbox_model.py",),
        {"MOLDAU_OUTBOX_SEEDS": "20000"},
        "client",
    ),
    Proof(
        "model of classic groups",
        ("tests/unit/groups/classic/test_model.py",),
        {"MOLDAU_CLASSIC_SEEDS": "20000"},
        "groups",
    ),
    Proof(
        "the laws of transactions",
        ("tests/unit/transactions/test_transaction_laws.py",),
        {"MOLDAU_TRANSACTION_LAW_SEEDS": "5000"},
        "transactions",
    ),
    Proof(
        "model of a coordinator's shard",
        ("tests/unit/broker/coordinators/test_shard_model.py",),
        {"MOLDAU_SHARD_SEEDS": "20000"},
        "groups",
    ),
    Proof(
        "model of committed offsets",
        ("tests/unit/groups/offsets/test_offsets_model.py",),
        {"MOLDAU_OFFSETS_SEEDS": "1000"},
        "groups",
    ),
    Proof(
        "model of consumer groups",
        ("tests/unit/groups/consumer/test_consumer_model.py",),
        {"MOLDAU_CONSUMER_SEEDS": "5000"},
        "groups",
    ),
    Proof(
        "model of groups that change their protocol",
        ("tests/unit/groups/migration/test_migration_model.py",),
        {"MOLDAU_MIGRATION_SEEDS": "5000"},
        "groups",
    ),
    Proof(
        "model of share groups",
        ("tests/unit/groups/share/test_share_model.py",),
        {"MOLDAU_SHARE_GROUP_SEEDS": "5000"},
        "groups",
    ),
    Proof(
        "model of shared partitions",
        ("tests/unit/sharing/test_model.py",),
        {"MOLDAU_SHARE_SEEDS": "2000"},
        "groups",
    ),
    Proof(
        "model of a group's members",
        ("tests/unit/client/test_membership_model.py",),
        {"MOLDAU_MEMBERSHIP_SEEDS": "2000"},
        "client",
    ),
    Proof(
        "model of the producer's transactions",
        ("tests/unit/client/test_transaction_model.py",),
        {"MOLDAU_TRANSACTION_SEEDS": "20000"},
        "client",
    ),
    Proof(
        "the producer under fire",
        ("tests/proofs/test_producer_under_fire.py",),
        {"MOLDAU_FIRE_RECORDS": "1000000", "MOLDAU_FIRE_KILLS": "50"},
        "client",
    ),
    Proof(
        "50 members come and go",
        ("tests/conformance/test_group_churn.py",),
        {"MOLDAU_CHURN_SECONDS": "300"},
        "groups",
    ),
    Proof(
        "exactly once while workers are killed",
        ("tests/conformance/test_exactly_once.py",),
        {"MOLDAU_WORKER_KILLS": "50"},
        "groups",
    ),
    Proof(
        "model of the Spark sink",
        ("tests/unit/pipelines/connector/test_sink_model.py",),
        {"MOLDAU_SINK_SEEDS": "20000"},
        "pipelines",
    ),
    Proof(
        "model of a worker's copy of the ledger",
        ("tests/unit/pipelines/connector/test_ledger_copy.py",),
        {"MOLDAU_LEDGER_SEEDS": "20000"},
        "pipelines",
    ),
    Proof(
        "bugs planted in a node, found in simulated worlds",
        ("tests/simulation/test_planted.py",),
        {},
        "simulator",
    ),
    Proof(
        "the Spark sink, killed at every point",
        ("tests/spark/test_sink_kills.py",),
        {"MOLDAU_SINK_POINTS": "all"},
        "pipelines",
    ),
    Proof(
        "a stateful pipeline under fire",
        ("tests/spark/test_exactly_once.py",),
        {
            "MOLDAU_PIPELINE_KILLS": "20",
            "MOLDAU_PIPELINE_RESTARTS": "5",
            "MOLDAU_PIPELINE_BATCHES": "1000",
        },
        "pipelines",
    ),
    Proof(
        "a stateful pipeline whose JVM is killed",
        ("tests/spark/test_jvm_kills.py",),
        {"MOLDAU_JVM_KILLS": "10"},
        "pipelines",
    ),
    Proof(
        "a SQL server, killed while its queries run",
        (f"{SQL_KILLS}[moldau]",),
        {"MOLDAU_SQL_KILLS": "20"},
        "pipelines",
    ),
    Proof(
        "a SQL server at Apache Kafka 4.3.1, killed while its queries run",
        (f"{SQL_KILLS}[apache]",),
        {"MOLDAU_SQL_KILLS": "20"},
        "pipelines",
    ),
    Proof(
        "other Sparks: a cluster, Connect, spark-submit and the oldest PySpark",
        ("tests/spark/test_masters.py", "tests/spark/test_app_launchers.py"),
        {},
        "pipelines",
    ),
    Proof(
        "a cluster of several machines whose workers are killed",
        ("tests/spark/test_cluster.py",),
        {"MOLDAU_MACHINE_KILLS": "8"},
        "pipelines",
    ),
    Proof(
        "a big topic through source, windows and sink",
        ("tests/spark/test_big_topic.py",),
        {"MOLDAU_BIG_RECORDS": "5000000"},
        "pipelines",
    ),
    Proof(
        "SQL without Spark beside Spark",
        ("tests/spark/test_sql_generated.py",),
        {"MOLDAU_SQL_STATEMENTS": "5000"},
        "pipelines",
    ),
    Proof(
        "tables of tables beside a batch, in runs of an app",
        (
            "tests/spark/test_table_aggregates.py::test_groups_and_types_are_those_of_a_batch",
            "tests/spark/test_foreign_joins.py::test_rows_are_those_of_a_batch",
            "tests/spark/test_sql_groups.py",
        ),
        {"MOLDAU_TABLE_BATCHES": "50"},
        "pipelines",
    ),
    Proof(
        "SQL: streams joined WITHIN a time, and HAVING over changes, beside batches",
        ("tests/spark/test_sql_within.py", "tests/spark/test_sql_having.py"),
        {"MOLDAU_SQL_ROUNDS": "12"},
        "pipelines",
    ),
    Proof(
        "Nexmark's queries",
        ("tests/spark/nexmark",),
        {"MOLDAU_NEXMARK_EVENTS": "1000000"},
        "pipelines",
    ),
    Proof(
        "model of a view's store",
        ("tests/unit/pipelines/views/test_store_laws.py",),
        {"MOLDAU_VIEW_SEEDS": "1000"},
        "pipelines",
    ),
    Proof(
        "a view's process, killed",
        ("tests/proofs/test_view_kills.py",),
        {"MOLDAU_VIEW_KILLS": "200"},
        "pipelines",
    ),
)


def main() -> int:
    """Run the named proofs, or all."""
    wanted = sys.argv[1:]
    proofs = [p for p in PROOFS if not wanted or any(name in p.name for name in wanted)]
    if not proofs:
        sys.exit(f"soak: no proof {wanted}; there are: {'; '.join(p.name for p in PROOFS)}")
    failed = False
    for proof in proofs:
        print(f"{proof.name}: running", flush=True)
        result = _run(proof)
        failed = failed or not result.passed
        _note(proof, result)
        print(f"{proof.name}: {result.summary}", flush=True)
    return failed


@dataclass(frozen=True, slots=True)
class Result:
    """How a proof went."""

    passed: bool
    summary: str
    counts: str
    seconds: float


def _run(proof: Proof) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *proof.tests, f"--junitxml={report}"]
        options = ["-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
        environment = os.environ | proof.environment | {"MOLDAU_EXPLORE": "1"}
        done = subprocess.run([*command, *options], env=environment, check=False)
        suites = ET.parse(report).getroot()
    suite = next(suites.iter("testsuite"))
    tests, failures, errors, skipped = (
        int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
    )
    summary = f"{tests - failures - errors - skipped} of {tests} tests passed"
    if skipped:
        summary += f", {skipped} skipped"
    noted = {f"{p.get('name')}={p.get('value')}": None for p in suites.iter("property")}
    asked = [f"{name}={value}" for name, value in proof.environment.items()]
    counts = ", ".join([*asked, *noted])
    passed = done.returncode == 0 and skipped < tests
    return Result(
        passed, summary if passed else f"FAILED: {summary}", counts, float(suite.get("time", "0"))
    )


def _note(proof: Proof, result: Result) -> None:
    page = RESULTS / f"{proof.subject}.md"
    rows = {}
    if page.exists():
        for line in page.read_text().splitlines():
            if line.startswith("| ") and not line.startswith("| proof "):
                rows[line.split(" | ")[0].removeprefix("| ")] = line
    date = datetime.now(UTC).date().isoformat()
    cells = [proof.name, result.counts, result.summary, f"{result.seconds:.0f}"]
    rows[proof.name] = f"| {' | '.join([*cells, date, commit_name(), machine_name()])} |"
    RESULTS.mkdir(parents=True, exist_ok=True)
    here = [known.name for known in PROOFS if known.subject == proof.subject]
    ordered = [rows[name] for name in here if name in rows]
    page.write_text(HEADER.format(subject=proof.subject) + "\n".join([*ordered, ""]))


def commit_name() -> str:
    """Return the commit, and whether sources differ from it."""
    commit = _git("describe", "--always", "--exclude=*") or "unknown"
    # The pages of a run before it are no change of what is proved.
    changed = _git("status", "--porcelain", "--untracked-files=no", ":(exclude)docs/proofs")
    return f"{commit}-dirty" if changed else commit


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def machine_name() -> str:
    """Return what the proofs run on."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {system}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
