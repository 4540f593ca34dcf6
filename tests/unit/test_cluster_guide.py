"""The guide for clusters: its commands are understood; tests/spark/test_cluster.py runs them."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.cli import pipeline, sql, start

ROOT = Path(__file__).parents[2]
NAME = "running-on-a-cluster.md"
PARSERS: dict[str, Callable[[], object]] = {
    "pipeline": pipeline.make_parser,
    "sql": sql.make_parser,
    "start": start.make_parser,
}


def commands() -> list[list[str]]:
    """Return the guide's commands, as words."""
    text = (ROOT / "docs" / NAME).read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line]


@pytest.mark.parametrize(
    "words", [each for each in commands() if each[0].endswith("moldau")], ids=" ".join
)
def test_its_commands_are_understood(words: list[str]) -> None:
    _, command, *arguments = words
    parser = PARSERS[command]()
    parsed = parser.parse_args(arguments)  # type: ignore[attr-defined]
    if command != "start":
        assert parsed.master.startswith("spark://")
        assert parsed.checkpoints.startswith("file:///")


def test_it_starts_what_the_tests_start() -> None:
    started = [words for words in commands() if words[1].endswith("/spark-class")]
    code = (ROOT / "tests/spark/standalone.py").read_text()
    assert len(started) == 2
    for words in started:
        assert f'"{words[2]}"' in code


@pytest.mark.parametrize("page", ["README.md", "docs/running-pipelines.md"])
def test_other_pages_lead_to_it(page: str) -> None:
    assert NAME in (ROOT / page).read_text()
