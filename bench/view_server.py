"""A SQL server with one table: how fast it answers by key over HTTP, and how large it becomes."""

import http.client
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.view_reader import key_of
from moldau.pipelines.sql.serving.http_client import ServerClient
from tests.served import SQL_SERVER, served

QUESTIONS = 5_000
"""Of each kind."""
WARM_UP = 100
DEADLINE_SECONDS = 600

Ask = Callable[[str], list[dict[str, object]]]


def measure(servers: str, topic: str, folder: Path, key_count: int) -> dict[str, float]:
    """Start a server, have it follow the topic, and ask it."""
    with served(*SQL_SERVER, servers, folder=folder) as server:
        client = ServerClient(server.address)
        empty_mb = _memory_mb(server.pid, "VmHWM")
        declared = "CREATE TABLE users (user STRING PRIMARY KEY, city STRING, note STRING)"
        list(client.execute(f"{declared} WITH (topic='{topic}')"))
        _wait_until_caught_up(client)
        with _kept_alive(server.address) as ask:
            kept = _times_ms(ask, key_count)
        fresh = _times_ms(lambda sql: [dict(each) for each in client.execute(sql)], key_count)
        peak_mb = _memory_mb(server.pid, "VmHWM")
        own_mb, mapped_mb = (_memory_mb(server.pid, name) for name in ("RssAnon", "RssFile"))
    print(
        f"  the server's memory: {empty_mb:.0f} MB before the table was there, "
        f"{peak_mb:.0f} MB at most; in the end {own_mb:.0f} MB of its own "
        f"and {mapped_mb:.0f} MB of files, mostly libraries"
    )
    return {
        **{f"kept_{name}": value for name, value in _percentiles(kept).items()},
        **{f"fresh_{name}": value for name, value in _percentiles(fresh).items()},
        "peak_mb": peak_mb,
    }


def _wait_until_caught_up(client: ServerClient) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not client.view("users", key_of(0))["caught_up"]:
        assert time.monotonic() < deadline, "the view has not caught up"
        time.sleep(0.1)


@contextmanager
def _kept_alive(address: str) -> Iterator[Ask]:
    """Ask everything on one connection."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc)) as connection:

        def ask(sql: str) -> list[dict[str, object]]:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/statements", json.dumps({"sql": sql}), headers)
            response = connection.getresponse()
            answers = [json.loads(line) for line in response]
            assert connection.sock is not None, "the server has hung up"
            return answers

        yield ask


def _times_ms(ask: Ask, key_count: int) -> list[float]:
    """Ask for keys by chance; the first questions are not counted."""
    chance = random.Random(7)
    times_ms = []
    for _ in range(WARM_UP + QUESTIONS):
        key = key_of(chance.randrange(key_count))
        asked = time.perf_counter()
        answers = ask(f"SELECT user, city FROM users WHERE user = '{key}'")
        times_ms.append((time.perf_counter() - asked) * 1000)
        assert answers[0]["engine"] == "view", answers
        assert [each["row"] for each in answers if "row" in each] == [[key, "Praha"]], answers
    return sorted(times_ms[WARM_UP:])


def _percentiles(times_ms: list[float]) -> dict[str, float]:
    return {"p50_ms": times_ms[QUESTIONS // 2], "p99_ms": times_ms[QUESTIONS * 99 // 100]}


def _memory_mb(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return float(status.partition(f"{name}:")[2].split()[0]) / 1024
