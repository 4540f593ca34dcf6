"""What people get wrong: one line that names the thing and the way out, and an exit code."""

import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import environment, moldau, script
from tests.nodes import RunningNode

MOLDAU = (sys.executable, "-m", "moldau.cli")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    node = RunningNode("--memory")
    yield node.bootstrap_servers
    node.kill()


@pytest.fixture
def closed() -> str:
    """Return an address at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def web_server() -> Iterator[str]:
    """Something that listens, and answers as a web server does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1024)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def complaint(*words: str, typed: bytes = b"", code: int = 1) -> str:
    """Run a command that must fail; return its one line."""
    done = moldau(*words, typed=typed)
    assert (done.returncode, done.stdout) == (code, ""), done
    [line] = done.stderr.splitlines()
    assert line.startswith("moldau: ")
    return re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", line.removeprefix("moldau: "))


@pytest.mark.parametrize(
    "words",
    [("topics", "list"), ("produce", "t"), ("consume", "t"), ("perf", "produce", "t")],
    ids=lambda words: words[0],
)
def test_a_closed_port(closed: str, words: tuple[str, ...]) -> None:
    assert complaint(*words, "-b", closed) == (
        "cannot connect to ADDRESS (Connection refused): is a broker running there?"
        " (`moldau doctor -b ADDRESS` looks closer)"
    )


def test_a_host_that_does_not_resolve() -> None:
    said = complaint("topics", "list", "-b", "nowhere.invalid:9092")
    assert said.startswith("the host name nowhere.invalid cannot be resolved (")
    assert "check its spelling" in said


def test_what_is_no_address() -> None:
    assert complaint("topics", "list", "-b", "localhost:kafka") == (
        "localhost:kafka: HOST:PORT is wanted, such as localhost:9092"
    )


def test_what_is_no_kafka(web_server: str) -> None:
    said = complaint("consume", "t", "-b", web_server)
    assert said.startswith("ADDRESS does not speak Kafka's protocol: ")
    assert said.endswith("(`moldau doctor -b ADDRESS` looks closer)")


def test_the_doctor_knows_a_web_server(web_server: str) -> None:
    done = moldau("doctor", "-b", web_server)
    assert done.returncode == 1
    assert f"PROBLEM  {web_server} is an HTTP server, no Kafka broker" in done.stdout


def test_the_doctor_knows_a_closed_port(closed: str) -> None:
    done = moldau("doctor", "-b", closed)
    assert done.returncode == 1
    assert f"PROBLEM  nothing listens at {closed}" in done.stdout
    assert "-> start one with `moldau start --port" in done.stdout


def test_the_doctor_finds_a_wrong_advertised_listener(closed: str) -> None:
    node = RunningNode("--memory", "--set", f"advertised.listeners=PLAINTEXT://{closed}")
    try:
        done = moldau("doctor", "-b", node.bootstrap_servers)
    finally:
        node.kill()
    assert done.returncode == 1
    assert f"broker 1 tells clients to come to {closed}, which cannot be reached" in done.stdout
    assert "-> set advertised.listeners of the broker" in done.stdout


def test_a_wrong_topic(server: str) -> None:
    line = "topic nope: UNKNOWN_TOPIC_OR_PARTITION"
    assert complaint("consume", "nope", "-b", server).startswith(line)
    assert complaint("topics", "describe", "nope", "-b", server).startswith(line)
    assert complaint("topics", "delete", "nope", "-b", server).startswith(line)
    said = complaint("produce", "n@pe", "-b", server, typed=b"x")
    assert said.startswith("topic n@pe: INVALID_TOPIC_EXCEPTION")


def test_a_record_too_large(server: str) -> None:
    said = complaint("produce", "large", "-b", server, typed=bytes(2_000_000))
    assert re.fullmatch(r"a record of \d+ bytes is larger than max.request.size=1048576: .*", said)
    raised = ("--property", "max.request.size=5000000")
    said = complaint("produce", "large", *raised, "-b", server, typed=bytes(2_000_000))
    assert "MESSAGE_TOO_LARGE" in said
    assert "max.message.bytes" in said


def test_a_missing_partition(server: str) -> None:
    moldau("topics", "create", "two", "--partitions", "2", "-b", server)
    assert complaint("consume", "two", "--partition", "7", "-b", server) == (
        "topic two has no partition 7, only 0 to 1: choose one of them"
    )
    said = complaint("produce", "two", "--partition", "7", "-b", server, typed=b"x")
    assert said.startswith("two-7: UNKNOWN_TOPIC_OR_PARTITION: the topic has 2 partitions")


def test_files_that_are_not_utf_8(server: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xff\xfe\n")
    assert complaint("topics", "list", "--command-config", str(file), "-b", server) == (
        f"{file}: it is not UTF-8 text"
    )
    # Lines are bytes, and no text.
    assert moldau("produce", "bytes", str(file), "-b", server).returncode == 0
    done = moldau(
        "consume", "bytes", "--from-beginning", "--max-messages", "1", "--json", "-b", server
    )
    assert '"value_base64":"//4="' in done.stdout


def test_files_that_are_not_there(server: str) -> None:
    line = "nofile: No such file or directory"
    assert complaint("produce", "t", "nofile", "-b", server) == line
    assert complaint("topics", "list", "--command-config", "nofile", "-b", server) == line


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "alter", "t"),
        ("topics", "create"),
        ("consume", "t", "--offset", "first"),
        ("consume", "t", "--offset", "1", "--from-beginning"),
        ("produce", "t", "--rate", "0"),
        ("produce", "t", "--acks", "2"),
        ("configs", "set", "topic", "t"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_wrong_usage(server: str, words: tuple[str, ...]) -> None:
    there = () if words == ("nonsense",) else ("-b", server)
    assert "--help` tells more)" in complaint(*words, *there, typed=b"x\n", code=2)


def test_a_pipe_that_closes(server: str) -> None:
    moldau("produce", "pipe", "-b", server, typed=b"line\n" * 20_000)
    command = [*MOLDAU, "consume", "pipe", "--from-beginning", "-b", server]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    "command",
    [
        ("consume", "stop-reading", "--from-beginning"),
        ("produce", "stop-writing", "--acks", "all"),
    ],
    ids=["consume", "produce"],
)
def test_ctrl_c_in_the_middle(server: str, command: tuple[str, ...]) -> None:
    action, topic, *_ = command
    moldau("produce", topic, "-b", server, typed=b"line\n")
    with subprocess.Popen(
        [*MOLDAU, *command, "-b", server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if action == "consume":
            assert process.stdout.readline() == b"line\n"
        else:
            process.stdin.write(b"line\n")
            process.stdin.flush()
            # The second record is its own: it has come so far.
            watch = ("--partition", "0", "--offset", "1", "--max-messages", "1")
            assert moldau("consume", topic, *watch, "-b", server).stdout == "line\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_faces_complain_in_one_line(closed: str) -> None:
    done = script("kafka-topics.sh", "--list", "--bootstrap-server", closed)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"kafka-topics: cannot connect to {closed} (Connection refused)")
    done = script("kafka-topics.sh", "--nonsense")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
