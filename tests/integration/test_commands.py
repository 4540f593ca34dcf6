"""The commands against a broker: tables, JSON, and what they say when they are done."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import moldau
from tests.golden_text import check_golden
from tests.nodes import RunningNode

VARYING = {
    r"(id |cluster |_id\":\")[\w-]{22}": r"\1ID",
    r"localhost:\d+": "localhost:9092",
    r"localhost is .*": "localhost is 127.0.0.1",
    r"Moldau \S+,": "Moldau VERSION,",
    r"all \d+ partition": "all N partition",
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    node = RunningNode("--memory")
    yield node.bootstrap_servers
    node.kill()


def said(*words: str, typed: bytes = b"") -> str:
    """Run a command that must succeed; what changes from run to run is left out."""
    done = moldau(*words, typed=typed)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for pattern, word in VARYING.items():
        text = re.sub(pattern, word, text)
    return text


def test_topics(server: str) -> None:
    there = ("-b", server)
    parts = [
        said(
            "topics", "create", "clicks", "--partitions", "2", "--config", "retention.ms=5", *there
        ),
        said("topics", "create", "keyed", "--partitions", "1", *there),
        said("topics", "create", "keyed", "--if-not-exists", *there),
        said("topics", "create", "later", "--dry-run", *there),
        said("topics", "list", *there),
        said("topics", "list", "--names", *there),
        said("topics", "list", "--json", *there),
        said("topics", "describe", "clicks", *there),
        said("topics", "describe", "clicks", "keyed", "--json", *there),
        said("topics", "alter", "clicks", "--partitions", "3", "--unset", "retention.ms", *there),
        said("topics", "describe", "clicks", *there),
        said("topics", "delete", "clicks", "keyed", *there),
        said("topics", "delete", "clicks", "--if-exists", *there),
    ]
    check_golden("topics", "\n".join(parts))


def test_configs(server: str) -> None:
    there = ("-b", server)
    said("topics", "create", "set-up", *there)
    parts = [
        said(
            "configs", "set", "topic", "set-up", *there, "retention.ms=5", "cleanup.policy=compact"
        ),
        said("configs", "show", "topic", "set-up", *there),
        said("configs", "show", "topic", "set-up", "--all", *there),
        said("configs", "unset", "topic", "set-up", "cleanup.policy", *there),
        said("configs", "show", "topic", "set-up", "--json", *there),
        said("configs", "set", "broker", "default", "log.cleaner.threads=2", *there),
        said("configs", "show", "broker", "default", *there),
        said("configs", "unset", "broker", "default", "log.cleaner.threads", *there),
        said("configs", "set", "client-metrics", "all", "interval.ms=60000", *there),
        said("configs", "show", "client-metrics", "all", *there),
    ]
    check_golden("configs", "\n".join(parts))


def test_records_travel(server: str, tmp_path: Path) -> None:
    there = ("-b", server)
    file = tmp_path / "lines.txt"
    file.write_bytes(b"a=1\nb=\xff\n")
    header = ("--header", "source=test")
    said("produce", "travel", str(file), "--key-separator", "=", *header, *there)
    how = ("--json", "--key", "c", "--compression", "zstd")
    counted = said("produce", "travel", *how, *there, typed=b"3")
    assert counted == '{"topic":"travel","records":1}\n'
    start = ("consume", "travel", "--from-beginning", "--max-messages", "3")
    rows = [json.loads(line) for line in said(*start, "--format", "json", *there).splitlines()]
    assert [(row["key"], row.get("value"), row.get("value_base64")) for row in rows] == [
        ("a", "1", None),
        ("b", None, "/w=="),
        ("c", "3", None),
    ]
    assert rows[0]["headers"] == [{"name": "source", "value": "test"}]
    assert rows[0]["timestamp_ms"] > 1_700_000_000_000
    shown = ("--print-key", "--print-offset", "--print-partition", "--print-headers")
    place = ("--partition", "0", "--offset", "2", "--max-messages", "1")
    assert said("consume", "travel", *place, *shown, *there) == (
        "Partition:0\tOffset:2\tNO_HEADERS\tc\t3\n"
    )
    assert said("consume", "travel", "--since", "1h", "--max-messages", "1", *there) == "1\n"
    assert said("consume", "travel", "--timeout", "0.1", *there) == ""


def test_perf(server: str) -> None:
    words = ("travel-fast", "--records", "2000", "--json", "-b", server)
    produced = json.loads(said("perf", "produce", *words))
    assert produced["records"] == 2000
    assert 0 < produced["p50_ms"] <= produced["p99_ms"] <= produced["max_ms"]
    assert json.loads(said("perf", "consume", *words))["records"] >= 2000


def test_doctor_is_content(server: str) -> None:
    check_golden("doctor", said("doctor", "-b", server))


def test_only_what_is_needed_is_imported() -> None:
    """Commands start quickly because they import little; `make bench` says how quickly."""
    program = (
        "import sys; from moldau.cli import main; main(['--version']); import moldau.cli.topics;"
        "print(sorted({'asyncio', 'ssl', 'argparse', 'moldau.client.admin'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "['argparse']"
