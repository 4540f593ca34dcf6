from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from moldau.cli.sql_completion import CompletionNames
from moldau.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from moldau.pipelines.sql.serving.http_client import ServerClient


class Server:
    """Has a stream, a table and a topic more."""

    fails = False

    def execute(self, sql: str) -> Iterator[Mapping[str, Any]]:
        if self.fails:
            raise PipelineError("away")
        for word, rows in {
            "SHOW STREAMS": ["orders"],
            "SHOW TABLES": ["users"],
            "SHOW TOPICS": ["orders", "order-log"],
            "DESCRIBE `orders`": ["id", "amount"],
            "DESCRIBE `users`": ["user", "city"],
        }.items():
            if word in sql:
                yield {"statement": 1, "columns": []}
                yield from ({"row": [each, None]} for each in rows)


def complete(names: CompletionNames, text: str) -> list[str]:
    return [text[: len(text) - length] + found for found, length in names.matches(text)]


def look(server: Server) -> CompletionNames:
    names = CompletionNames(cast("ServerClient", server))
    names.refresh().join()
    return names


def test_names_and_keywords() -> None:
    names = look(Server())
    assert complete(names, "SELECT * FROM ord") == [
        "SELECT * FROM order-log",
        "SELECT * FROM orders",
        "SELECT * FROM order",
    ]
    assert complete(names, "SELECT ci") == ["SELECT city"]
    assert complete(names, "SEL") == ["SELECT"]
    assert complete(names, "sel") == ["select"]
    assert complete(names, "ex") == ["exit", "exists", "explain", "extended"]
    assert complete(names, "SELECT ") == []


def test_settings_in_quotes() -> None:
    assert complete(look(Server()), "SET 'auto") == ["SET 'auto.offset.reset'"]


def test_a_server_that_is_away_disturbs_nobody() -> None:
    server = Server()
    server.fails = True
    assert complete(look(server), "SELECT * FROM ord") == ["SELECT * FROM order"]
