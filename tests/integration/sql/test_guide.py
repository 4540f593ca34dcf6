"""The guide's statements work as written, and answer what it says; tests/spark has the others."""

import re
from pathlib import Path

import pytest

from moldau.testing import Broker
from tests import commands
from tests.integration.sql.test_shell import serve

GUIDE = Path("docs/sql.md")
BLOCK = re.compile(r"(<!-- Spark -->\n)?```(\w+)\n(.*?)```\n", re.DOTALL)


def examples() -> list[tuple[str, str | None]]:
    """Return statements, and what they print if the guide says so."""
    blocks = BLOCK.findall(GUIDE.read_text())
    found = []
    for at, (is_sparks, kind, text) in enumerate(blocks):
        # The first one is shop.sql, which tests/spark runs.
        if kind != "sql" or is_sparks or at == 0:
            continue
        answer = blocks[at + 1] if at + 1 < len(blocks) else ("", "", "")
        found.append((text, answer[2] if answer[1] == "text" else None))
    return found


def test_the_examples(moldau: Broker, tmp_path: Path) -> None:
    assert len(examples()) >= 6
    with serve(moldau, tmp_path) as server:
        for text, answer in examples():
            done = commands.moldau("sql", "--server", server, "-e", text)
            assert done.returncode == 0, f"{text}\n{done.stderr}"
            assert answer in (None, done.stdout), text


@pytest.mark.parametrize("page", ["sql.md", "from-ksqldb.md"])
def test_pages_that_are_named_are_there(page: str) -> None:
    for name in re.findall(r"\]\(([\w-]+\.md)\)", (Path("docs") / page).read_text()):
        assert (Path("docs") / name).exists(), name
