"""What can be typed in the shell: keywords, relations, topics and columns."""

import re
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.inside_client import InsideClient
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.pipelines.sql.session import SETTINGS

KEYWORDS: Final = (
    "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "CHANGES", "CREATE", "DELETE", "DESCRIBE",
    "DISTINCT", "DROP", "EARLIEST", "ELSE", "EMIT", "END", "EXISTS", "EXPLAIN", "EXTENDED", "FINAL",
    "FROM", "BEGINNING", "FULL", "GRACE", "GROUP", "HAVING", "HOPPING", "IF", "IN", "INNER",
    "INSERT", "INTO", "INTERVAL", "IS", "JOIN", "KEY", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "OF",
    "ON", "OR", "ORDER", "PARTITION", "PAUSE", "PERIOD", "PRIMARY", "PRINT", "QUERIES", "REPLACE",
    "RESUME", "RIGHT", "SELECT", "SESSION", "SET", "SHOW", "STREAM", "STREAMS", "TABLE", "TABLES",
    "TERMINATE", "THEN", "TIMESTAMP", "TOPIC", "TOPICS", "TUMBLING", "UNSET", "VALUES", "VERSION",
    "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN",
)  # fmt: skip
COMMANDS: Final = ("exit", "help", "quit")
_WORD: Final = re.compile(r"[\w$.'-]*$")


class CompletionNames:
    """What a server has, as it was when somebody last looked."""

    def __init__(self, client: ServerClient | InsideClient) -> None:
        self._client = client
        self._found: tuple[str, ...] = ()

    def refresh(self) -> threading.Thread:
        """Look again, beside whoever types."""
        thread = threading.Thread(target=self._look, name="moldau-sql-names", daemon=True)
        thread.start()
        return thread

    def _look(self) -> None:
        try:
            relations = _firsts(self._client.execute("SHOW STREAMS; SHOW TABLES;"))
            topics = _firsts(self._client.execute("SHOW TOPICS;"))
            describe = "".join(f"DESCRIBE `{each}`;" for each in relations)
            columns = _firsts(self._client.execute(describe)) if relations else []
        except PipelineError:
            return  # nothing is completed, and nobody is disturbed
        self._found = tuple(dict.fromkeys((*relations, *topics, *columns)))

    def matches(self, before: str) -> Iterator[tuple[str, int]]:
        """Yield what the last word of a text may become, and how much of it is there already."""
        found = _WORD.search(before)
        word = found.group() if found else ""
        if not word:
            return
        start = before[: -len(word)].strip()
        known: Iterable[str] = self._found
        if not start:
            known = (*known, *COMMANDS)
        for each in sorted(known, key=str.lower):
            if each.lower().startswith(word.lower()) and each.lower() != word.lower():
                yield each, len(word)
        for each in KEYWORDS:
            if each.startswith(word.upper()) and each != word.upper():
                yield (each if word[0].isupper() else each.lower()), len(word)
        if word.startswith("'"):
            for each in SETTINGS:
                if f"'{each}".startswith(word):
                    yield f"'{each}'", len(word)


def _firsts(answers: Iterable[Any]) -> list[str]:
    return [str(each["row"][0]) for each in answers if "row" in each]
