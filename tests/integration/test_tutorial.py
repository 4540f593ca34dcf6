"""What people copy: the lines of Kafka's tutorials, and those of our banner, as printed."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import SCRIPTS, environment
from tests.nodes import RunningNode

ROOT = Path(__file__).parents[2]
CREATE = "kafka-topics.sh --create --topic my-first-topic --bootstrap-server localhost:9092 --partitions 3 --replication-factor 1"  # noqa: E501
PRODUCE = "kafka-console-producer.sh --topic my-first-topic --bootstrap-server localhost:9092"
CONSUME = (
    "kafka-console-consumer.sh --topic my-first-topic --bootstrap-server localhost:9092"
    " --from-beginning"
)


@pytest.fixture
def node() -> Iterator[RunningNode]:
    running = RunningNode("--memory")
    yield running
    running.kill()


def shell(line: str, directory: Path, typed: str = "", path: str = "") -> str:
    """Run a line in a shell; return what it printed."""
    done = subprocess.run(
        ["bash", "-c", line],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=directory,
        env=environment(PATH=path or f"{SCRIPTS}:{os.environ['PATH']}"),
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("suffix", [".sh", ""])
def test_the_tutorials_lines(node: RunningNode, tmp_path: Path, suffix: str) -> None:
    def run(line: str, typed: str = "") -> str:
        there = line.replace("localhost:9092", node.bootstrap_servers).replace(".sh", suffix)
        return shell(there, tmp_path, typed)

    assert run(CREATE) == "Created topic my-first-topic.\n"
    assert run(PRODUCE, "This is my first event\nThis is my second event\n") == ""
    # The tutorial ends it with Ctrl-C.
    lines = run(f"{CONSUME} --max-messages 2").splitlines()
    assert sorted(lines) == ["This is my first event", "This is my second event"]
    described = run(
        "kafka-topics.sh --describe --topic my-first-topic --bootstrap-server localhost:9092"
    )
    assert described.startswith("Topic: my-first-topic\tTopicId: ")
    assert described.count("\tTopic: my-first-topic\tPartition: ") == 3


def test_keys_with_the_older_and_the_newer_names(node: RunningNode, tmp_path: Path) -> None:
    def run(line: str, typed: str = "") -> str:
        return shell(line.replace("localhost:9092", node.bootstrap_servers), tmp_path, typed)

    run(f"{PRODUCE} --property parse.key=true --property key.separator=:", "a:1\n")
    run(f"{PRODUCE} --reader-property parse.key=true --reader-property key.separator=,", "b,2\n")
    run(f"{PRODUCE} --producer-property acks=1 --compression-codec --sync", "3\n")
    older = run(f"{CONSUME} --property print.key=true --max-messages 3")
    newer = run(f"{CONSUME} --formatter-property print.key=true --max-messages 3")
    assert older == newer == "a\t1\nb\t2\nnull\t3\n"


@pytest.mark.parametrize("document", ["README.md", "docs/commands.md"])
def test_the_documents_lines(tmp_path: Path, document: str) -> None:
    node = RunningNode("--data", str(tmp_path / "data"))
    try:
        blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / document).read_text(), re.M | re.S)
        assert blocks
        script = "set -e\n" + "".join(blocks).replace("localhost:9092", node.bootstrap_servers)
        there = f"export MOLDAU_BOOTSTRAP_SERVER={node.bootstrap_servers}\n"
        shell(there + script, tmp_path)
    finally:
        node.kill()


def test_the_banners_lines_work_as_printed(tmp_path: Path) -> None:
    bare = os.pathsep.join(
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not (Path(folder) / "kafka-topics.sh").exists()
    )
    before = os.environ["PATH"]
    os.environ["PATH"] = bare
    try:
        node = RunningNode("--memory")
    finally:
        os.environ["PATH"] = before
    try:
        begin = node.output.index("Try it, in another terminal:")
        lines = [line for line in node.output[begin + 1 :] if line.startswith("  ")]
        assert len(lines) == 4, "PATH, and three things to try"
        printed = shell("\n".join(lines), tmp_path, path=bare)
    finally:
        node.kill()
    first, second = printed.splitlines()[:2]
    assert first == "hello"
    assert second.startswith("Topic: rivers\t")
