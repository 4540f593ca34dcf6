"""The HTTP API over a socket, with an engine that only counts."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest
import uvicorn

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql import asking
from moldau.pipelines.sql.catalog.ownership import ServiceOwner
from moldau.pipelines.sql.serving.http_api import BODY_BYTES_MAX, ServerIdentity, make_app
from moldau.pipelines.sql.serving.http_client import (
    ServerClient,
    ServerRefusedError,
    ServerUnreachableError,
)
from moldau.pipelines.sql.serving.streaming import STATEMENTS_MAX, Executions
from tests.sql_fakes import Fakes

ORDERS = "CREATE STREAM orders (id STRING KEY, n INT) WITH (topic='orders', partitions=1);"
USERS = "CREATE TABLE users (id BIGINT PRIMARY KEY, n INT) WITH (topic='users', partitions=1);"
DEADLINE_SECONDS = 30


@contextmanager
def _served(fakes: Fakes) -> Iterator[ServerClient]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        identity = ServerIdentity("default", ServiceOwner("castle", 11, address, 1_767_225_600_000))
        executions = Executions()
        app = make_app(fakes.service(), identity, executions)
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield ServerClient(address)
        executions.cancel_all()
        server.should_exit = True
        thread.join()


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
def client(fakes: Fakes) -> Iterator[ServerClient]:
    with _served(fakes) as client:
        yield client


def _send(
    client: ServerClient, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, Any]:
    host = client.address.removeprefix("http://")
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection(host, timeout=DEADLINE_SECONDS)) as connection:
        connection.request(method, path, body, given)
        response = connection.getresponse()
        text = response.read()
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text.decode()


def test_whoever_waits_for_spark_is_told_so(
    client: ServerClient, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "NOTE_SECONDS", 0.01)
    done = fakes.runner.works = threading.Event()
    told = []
    for each in client.execute(ORDERS + "CREATE STREAM x AS SELECT * FROM orders"):
        told.append(each.get("message") or str(each["note"]).partition(",")[0])
        if "so far" in told[-1]:
            done.set()
    assert list(dict.fromkeys(told)) == [
        "Stream orders created",
        "Spark is starting",
        "Spark is starting (0 s so far)",
        "Spark is starting: done",
        "Stream x created by query CSAS_X_1",
    ]


def test_statements_are_answered_line_by_line(client: ServerClient) -> None:
    sql = ORDERS + "SET 'auto.offset.reset'='earliest'; SELECT * FROM orders; SHOW STREAMS"
    assert list(client.execute(sql)) == [
        {"statement": 1, "message": "Stream orders created"},
        {
            "statement": 2,
            "message": "auto.offset.reset is earliest now",
            "settings": {"auto.offset.reset": "earliest"},
        },
        {"statement": 3, "columns": [{"name": "n", "type": "int"}], "engine": "local"},
        {"row": [1]},
        {"row": [2]},
        {"row": [3]},
        {"statement": 3, "rows": 3},
        {
            "statement": 4,
            "columns": [
                {"name": each, "type": "string"} for each in ("name", "topic", "key", "format")
            ],
            "engine": "server",
        },
        {"row": ["orders", "orders", "id", "json"]},
        {"statement": 4, "rows": 1},
    ]
    assert list(client.execute(" ; -- nothing\n")) == []


def test_a_session_is_what_the_client_says(client: ServerClient) -> None:
    list(client.execute(ORDERS))
    with pytest.raises(ServerRefusedError, match="nobody can answer this; there is no such engine"):
        list(client.execute("SELECT * FROM orders", {"sql.engine": "spark"}))
    with pytest.raises(ServerRefusedError, match=r"there is no setting sql\.engin: did you mean"):
        list(client.execute("SELECT * FROM orders", {"sql.engin": "spark"}))


def test_what_is_no_sql_is_shown_and_nothing_is_done(client: ServerClient, fakes: Fakes) -> None:
    with pytest.raises(ServerRefusedError) as caught:
        list(client.execute(ORDERS + "\nSELEC * FROM orders"))
    assert "\n  SELEC * FROM orders\n  ^^^^^" in str(caught.value)
    assert (caught.value.error["line"], caught.value.error["column"]) == (2, 1)
    assert fakes.log.changes == []


def test_a_statement_that_fails_is_the_last(client: ServerClient, fakes: Fakes) -> None:
    answers: list[Mapping[str, Any]] = []
    with pytest.raises(ServerRefusedError) as caught:
        answers.extend(client.execute(ORDERS + "\n\nDROP STREAM order;" + USERS))
    assert caught.value.error == {
        "message": "there is no stream or table order: did you mean orders?",
        "statement": 2,
        "line": 3,
    }
    assert fakes.service().snapshot.find("users") is None

    fakes.engines[0].fails = PipelineError("the topic is gone")
    iterator = client.execute("SELECT * FROM orders")
    assert next(iterator)["engine"] == "local"
    with pytest.raises(ServerRefusedError, match="the topic is gone"):
        list(iterator)


def test_a_mistake_of_ours_is_told_apart(
    client: ServerClient, fakes: Fakes, caplog: pytest.LogCaptureFixture
) -> None:
    list(client.execute(ORDERS))
    fakes.log.fails = ZeroDivisionError("oh")
    body = json.dumps({"sql": USERS}).encode()
    status, answer = _send(client, "POST", "/statements", body, content_type="application/json")
    assert status == 500
    assert answer["error"]["message"] == (
        "this should not happen, see the server's log: ZeroDivisionError: oh"
    )
    assert "a statement has failed: CREATE TABLE users" in caplog.text


def test_a_push_query_ends_when_its_client_goes(client: ServerClient, fakes: Fakes) -> None:
    list(client.execute(ORDERS))
    answers = client.execute("SELECT * FROM orders EMIT CHANGES")
    assert next(answers)["columns"] == [{"name": "n", "type": "int"}]
    assert next(answers) == {"row": [1]}
    assert not fakes.engines[0].ended.is_set()
    answers.close()
    assert fakes.engines[0].ended.wait(DEADLINE_SECONDS)


def test_only_so_many_are_executed_at_once(client: ServerClient, fakes: Fakes) -> None:
    list(client.execute(ORDERS))
    running = [client.execute("SELECT * FROM orders EMIT CHANGES") for _ in range(STATEMENTS_MAX)]
    for each in running:
        assert "columns" in next(each)
    with pytest.raises(ServerRefusedError, match="64 requests are being executed: try again"):
        list(client.execute("SHOW STREAMS"))
    # Whoever only wants to know whether the server is there is answered all the same.
    assert client.health()["is_owner"] is True
    for each in running:
        each.close()


def test_progress_is_told(client: ServerClient, fakes: Fakes) -> None:
    list(client.execute(ORDERS))
    fakes.engines[0].progress = (7, 10)
    answers = list(client.execute("SELECT * FROM orders"))
    assert answers[0] == {"progress": {"done": 7, "total": 10}}
    assert answers[-1] == {"statement": 1, "rows": 3}


@pytest.mark.parametrize(
    ("body", "content_type", "status", "message"),
    [
        (b"{}", "text/plain", 415, "send the statements as application/json"),
        (b"SHOW STREAMS", "application/json", 400, "the body is not JSON: "),
        (b"[]", "application/json", 400, "the body is not a JSON object"),
        (b'{"sql": 1}', "application/json", 400, 'the body is {"sql": "...'),
        (b'{"sql": "", "x": 1}', "application/json", 400, 'the body is {"sql": "...'),
        (b'{"sql": "", "settings": {"a": 1}}', "application/json", 400, "the body is {"),
        (b" " * (BODY_BYTES_MAX + 1), "application/json", 413, "the body is larger than 1048576"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    client: ServerClient, body: bytes, content_type: str, status: int, message: str
) -> None:
    found, answer = _send(client, "POST", "/statements", body, content_type=content_type)
    assert found == status
    assert answer["error"]["message"].startswith(message)


def test_a_page_of_somebody_else_is_refused(client: ServerClient) -> None:
    status, _ = _send(client, "GET", "/health", host="evil.example")
    assert status == 400
    assert _send(client, "GET", "/nothing") == (404, {"error": {"message": "Not Found"}})
    assert _send(client, "GET", "/statements")[0] == 405


def test_health_says_who_it_is(client: ServerClient) -> None:
    assert client.health() == {
        "service": "default",
        "host": "castle",
        "pid": 11,
        "since_ms": 1_767_225_600_000,
        "is_owner": True,
        "queries": 0,
    }


def test_views_are_asked_by_key(client: ServerClient, fakes: Fakes) -> None:
    list(client.execute(USERS))
    fakes.views.rows = {5: [(1,)], (5, "2026-01-01", None): [(2,)]}
    assert client.view("Users", "5") == {
        "columns": [{"name": "n", "type": "int"}],
        "rows": [[1]],
        "offsets": {"0": 7},
        "caught_up": True,
    }
    assert client.view("users", "5", start="2026-01-01")["rows"] == [[2]]
    assert client.view("users", "6")["rows"] == []
    with pytest.raises(ServerRefusedError, match="there is no table nobody"):
        client.view("nobody", "5")
    with pytest.raises(ServerRefusedError, match=r"key ann: .* is wanted, as JSON"):
        client.view("users", "ann")
    assert _send(client, "GET", "/views/users")[0] == 400


def test_the_description_has_every_route(client: ServerClient) -> None:
    status, description = _send(client, "GET", "/openapi.json")
    assert status == 200
    assert description["openapi"] == "3.1.0"
    fakes = Fakes()
    owner = ServiceOwner("castle", 11, "", 0)
    app = make_app(fakes.service(), ServerIdentity("default", owner), Executions())
    paths = {route.path for route in app.routes}
    assert description["paths"].keys() == paths - {"/openapi.json"}


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    client = ServerClient(f"127.0.0.1:{port}")
    with pytest.raises(ServerUnreachableError) as caught:
        client.health()
    assert str(caught.value) == (
        f"no server answers at http://127.0.0.1:{port}: Connection refused"
    )
    with pytest.raises(PipelineError, match="an address is http://host:port"):
        ServerClient("ftp://somewhere")
