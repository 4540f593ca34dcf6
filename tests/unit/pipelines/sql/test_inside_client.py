"""A service that is asked in the same process: what a server would say, without one."""

import threading
from contextlib import closing

import pytest

from moldau.pipelines.sql import asking
from moldau.pipelines.sql.inside_client import InsideClient
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.views.client import ServerRefusedError
from tests.sql_fakes import Fakes

ORDERS = "CREATE STREAM orders (id STRING KEY, n INT) WITH (topic='orders', partitions=1);"


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
def client(fakes: Fakes) -> InsideClient:
    return InsideClient(fakes.service())


def test_answers_are_those_of_a_server(client: InsideClient) -> None:
    sql = ORDERS + "SET 'auto.offset.reset'='earliest'; SELECT * FROM orders"
    told = list(client.execute(sql))
    assert told == [
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
    ]
    assert list(client.execute(parse("SELECT * FROM orders"))) == [
        {**each, "statement": 1} if "statement" in each else each for each in told[2:]
    ]
    assert client.queries == 0
    list(client.execute("CREATE STREAM x AS SELECT * FROM orders"))
    assert client.queries == 1


def test_the_first_statement_that_fails_is_the_last(client: InsideClient) -> None:
    answers = client.execute(ORDERS + "DESCRIBE nothing; SHOW STREAMS")
    assert next(answers) == {"statement": 1, "message": "Stream orders created"}
    with pytest.raises(ServerRefusedError, match="there is no stream or table nothing") as caught:
        next(answers)
    assert caught.value.error["statement"] == 2
    with pytest.raises(ServerRefusedError, match="line 1, column 1: expected a statement"):
        list(client.execute("SELEC"))


def test_whoever_closes_it_ends_what_runs(client: InsideClient, fakes: Fakes) -> None:
    list(client.execute(ORDERS))
    with closing(client.execute("SELECT * FROM orders EMIT CHANGES")) as answers:
        assert "columns" in next(answers)
        assert next(answers) == {"row": [1]}
        assert not fakes.engines[0].ended.is_set()
    assert fakes.engines[0].ended.wait(60)


def test_notes_come_while_it_works(
    client: InsideClient, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "NOTE_SECONDS", 0.01)
    done = fakes.runner.works = threading.Event()
    for each in client.execute(ORDERS + "CREATE STREAM x AS SELECT * FROM orders"):
        if "so far" in str(each.get("note")):
            done.set()
    assert done.is_set()
