"""`moldau sql` as a user types it: without Spark, against a broker in memory."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from moldau import Admin, Producer
from moldau.testing import Broker
from tests.commands import environment, moldau
from tests.served import SQL_SERVER, served

DEADLINE_SECONDS = 30.0
WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from moldau.cli import main
sys.exit(main(sys.argv[1:]))
"""
DECLARE = """
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE) WITH (partitions=1);
CREATE TABLE users (user STRING PRIMARY KEY, city STRING) WITH (partitions=1);
INSERT INTO orders VALUES ('o1', 'ann', 12.5), ('o2', 'bob', 7);
INSERT INTO users VALUES ('ann', 'Praha'), ('bob', NULL), ('ann', 'Brno');
"""


@pytest.fixture
def server(moldau: Broker, tmp_path: Path) -> Iterator[str]:
    """A server in a process of its own, where there is no Spark."""
    with serve(moldau, tmp_path) as address:
        yield address


@contextmanager
def serve(broker: Broker, folder: Path) -> Iterator[str]:
    program = (sys.executable, "-c", WITHOUT_SPARK)
    with served(*SQL_SERVER, broker.bootstrap_servers, folder=folder, program=program) as server:
        yield server.address
    said = (folder / "output").read_text().splitlines()
    assert said[-2:] == [f"ready {server.address}", "stopping"]


def sql(server: str, text: str, *words: str, code: int = 0) -> list[str]:
    done = moldau("sql", "--server", server, *words, "-e", text)
    assert done.returncode == code, done.stderr
    return (done.stderr if code else done.stdout).splitlines()


def test_a_first_session(server: str, moldau: Broker) -> None:
    assert sql(server, DECLARE) == [
        "Stream orders created",
        "Table users created",
        "2 rows inserted into orders",
        "3 rows inserted into users",
    ]
    assert sql(
        server, "SELECT user, sum(amount) AS total FROM orders GROUP BY user ORDER BY 1"
    ) == [
        "USER  TOTAL",
        "ann    12.5",
        "bob     7.0",
    ]
    assert sql(server, "SELECT * FROM users WHERE user = 'ann'") == ["USER  CITY", "ann   Brno"]
    assert sql(server, "SHOW STREAMS; SHOW TABLES; DESCRIBE users;") == [
        "NAME    TOPIC   KEY  FORMAT",
        "orders  orders  id   json",
        "NAME   TOPIC  KEY   FORMAT",
        "users  users  user  json",
        "COLUMN  TYPE    KEY",
        "user    string  PRIMARY KEY",
        "city    string",
    ]
    printed = sql(server, "PRINT orders FROM BEGINNING LIMIT 1", "--json")
    assert json.loads(printed[0])["value"] == '{"user":"ann","amount":12.5}'
    assert sql(server, "DROP STREAM orders DELETE TOPIC") == [
        "Stream orders dropped; topic orders deleted"
    ]
    assert "orders" not in moldau.topics()


def test_who_answers_is_explained(server: str) -> None:
    sql(server, DECLARE)
    assert sql(server, "EXPLAIN SELECT city FROM users WHERE user = 'ann'")[1:] == [
        "Engine: view",
        "The view of users, by key 'ann'",
    ]
    lines = sql(server, "EXPLAIN SELECT upper(city) FROM users WHERE user = 'ann'")
    assert lines[1:3] == ["Engine: local", "Not view: UPPER(city) is computed, or no column"]
    (line,) = sql(server, "SELECT percentile(amount, 0.5) FROM orders", code=1)
    assert line.startswith("moldau: nobody can answer this; view: ")
    assert line.endswith("spark: moldau needs PySpark 4.2 or newer: pip install 'moldau[spark]'")
    (line,) = sql(server, "CREATE STREAM more AS SELECT * FROM orders", code=1)
    assert line == "moldau: moldau needs PySpark 4.2 or newer: pip install 'moldau[spark]'"


def test_what_comes_is_seen_at_once(server: str, moldau: Broker) -> None:
    sql(server, DECLARE)
    earliest = "SET 'auto.offset.reset'='earliest'; "
    text = "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 8 EMIT CHANGES LIMIT 1"
    assert sql(server, earliest + text, "--json")[1:] == ['{"id":"o1","twice":25.0}']
    command = [sys.executable, "-m", "moldau.cli", "sql", "--server", server, "--json", "-e"]
    with subprocess.Popen(
        [*command, text.removesuffix(" LIMIT 1")], stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout is not None
        with Producer(moldau.bootstrap_servers) as producer:
            # Where it begins is where it was started, and when that was is its own business.
            found = b""
            os.set_blocking(shell.stdout.fileno(), False)
            deadline = time.monotonic() + DEADLINE_SECONDS
            while not found and time.monotonic() < deadline:
                producer.send("orders", b'{"user":"eva","amount":9}', b"o9").result()
                found = shell.stdout.readline()
        shell.send_signal(signal.SIGINT)
        assert shell.wait(DEADLINE_SECONDS) == 130
    assert found == b'{"id":"o9","twice":18.0}\n'


def test_errors_point_at_their_place(server: str, tmp_path: Path) -> None:
    lines = sql(server, "SHOW TOPICS;\n CREATE STREEM s (id STRING KEY);", code=1)
    assert lines[0].startswith("moldau: line 2, column 9: ")
    assert lines[1:] == [
        "   CREATE STREEM s (id STRING KEY);",
        "          ^^^^^^ did you mean STREAM?",
    ]
    file = tmp_path / "wrong.sql"
    file.write_text("SHOW STREAMS;\nDESCRIBE nothing;\n")
    done = moldau("sql", "--server", server, "-f", str(file))
    assert done.returncode == 1
    assert f"moldau: {file}: there is no stream or table nothing" in done.stderr


def test_statements_from_the_input_and_a_server_inside(moldau: Broker, tmp_path: Path) -> None:
    from tests.commands import moldau as command  # the fixture has the same name

    with Producer(moldau.bootstrap_servers) as producer:
        for number in range(3):
            producer.send("rivers", json.dumps({"n": number, "name": "Vltava"}).encode()).result()
    typed = b"SELECT name, sum(n) AS n FROM rivers GROUP BY name;"
    done = command("sql", "-b", moldau.bootstrap_servers, typed=typed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # Who only asks joins no group, so nobody takes it for the cluster's server.
    with Admin(moldau.bootstrap_servers) as admin:
        assert not admin.list_groups()
    assert done.stdout.splitlines() == ["NAME    N", "Vltava  3"]
    assert done.stderr.splitlines()[0] == (
        f"no server runs: this shell has one inside, for {moldau.bootstrap_servers}"
    )


COUNTING = """
import sys
from moldau.pipelines.sql.language import parsing
parsed = []
split = parsing.split
parsing.split = lambda text: parsed.append(text) or split(text)
from moldau.cli import main
code = main(sys.argv[1:])
assert len(parsed) == 1, parsed
assert "uvicorn" not in sys.modules
sys.exit(code)
"""


def test_what_is_asked_is_parsed_once_and_needs_no_server(moldau: Broker, tmp_path: Path) -> None:
    with Producer(moldau.bootstrap_servers) as producer:
        producer.send("rivers", b'{"n": 1}').result()
    asked = ("sql", "-b", moldau.bootstrap_servers, "-e", "SELECT n FROM rivers")
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, *asked],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "N\n1\n"), done.stderr


def test_names_that_are_not_there_have_others_like_them(moldau: Broker, tmp_path: Path) -> None:
    from tests.commands import moldau as command  # the fixture has the same name

    moldau.create_topic("rivers")
    for text, words in (
        ("SELECT * FROM rivrs", "there is no stream, table or topic rivrs: did you mean rivers?"),
        ("EXPLAIN SELECT * FROM river", "topic river: did you mean rivers?"),
        ("SELECT TOPK(n, 2) FROM rivers", "there is no function TOPK; instead of ksqlDB's there"),
    ):
        done = command("sql", "-b", moldau.bootstrap_servers, "-e", text, cwd=tmp_path)
        assert done.returncode == 1
        assert words in done.stderr, done.stderr


def test_the_second_server_says_who_is_the_first(
    server: str, moldau: Broker, tmp_path: Path
) -> None:
    from tests.commands import moldau as command  # the fixture has the same name

    second = command(*SQL_SERVER, moldau.bootstrap_servers, cwd=tmp_path)
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert line.startswith(f"moldau: service default is run by the server at {server} (host ")
    # A shell finds it by the cluster.
    shell = command("sql", "-b", moldau.bootstrap_servers, "-e", "SHOW TABLES", cwd=tmp_path)
    assert shell.stderr.splitlines()[0] == f"connected to the server at {server}"


class Terminal:
    """A shell in a pseudo terminal, as somebody sits before it."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            changes = {"XDG_STATE_HOME": str(folder), "TERM": "xterm", "PAGER": "cat"}
            changes["PROMPT_TOOLKIT_NO_CPR"] = "1"  # nobody here says where the cursor is
            os.execve(
                sys.executable,
                [sys.executable, "-m", "moldau.cli", *words],
                environment(**changes),
            )
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def wait_for(self, pattern: str) -> None:
        """Read until this was shown; what was before is forgotten."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        os.set_blocking(self._file, False)
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < deadline, f"no {pattern} in {self.shown!r}"
            try:
                self.shown += os.read(self._file, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
        self.shown = self.shown[found.end() :]

    def end(self) -> int:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            try:
                os.read(self._file, 65536)
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the shell has not ended")

    def kill(self) -> None:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def test_the_shell_in_a_terminal(server: str, tmp_path: Path) -> None:
    sql(server, DECLARE)
    shell = Terminal(["sql", "--server", server], tmp_path)
    try:
        shell.wait_for("sql>")
        shell.type("SELECT user,\r")
        shell.wait_for("->")
        shell.type("amount FROM orders WHERE id = 'o2';\r")
        shell.wait_for(r"USER  AMOUNT\r\nbob +7\.0\r\n")
        shell.type("SELECT * FROM nothing;\r")
        shell.wait_for("moldau: there is no stream, table or topic nothing")
        shell.type("SET 'auto.offset.reset'='earliest';\r")
        shell.wait_for("auto.offset.reset is earliest now")
        # The setting holds for what follows; Ctrl-C ends this, and not the shell.
        shell.type("SELECT id FROM orders EMIT CHANGES;\r")
        shell.wait_for("o1 *\r\n")
        shell.type("\x03")
        shell.wait_for("sql>")
        shell.type("help\r")
        shell.wait_for("docs/sql.md is the guide")
        shell.type("exit\r")
        assert shell.end() == 0
    finally:
        shell.kill()
    assert (
        "+amount FROM orders WHERE id = 'o2';" in (tmp_path / "moldau" / "sql_history").read_text()
    )
