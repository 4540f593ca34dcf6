"""The examples in the documents run.

Those that need a broker do in tests/conformance, those that are tests in tests/integration/testing,
and those that go on from another beside that one.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

ELSEWHERE = re.compile(r"localhost:9092|^def test_|^# further down in ", re.MULTILINE)


def _examples() -> list[object]:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return [
        pytest.param(match.group(1), id=f"{path.relative_to(ROOT)}-{number}")
        for path in sorted(documents)
        for number, match in enumerate(BLOCK.finditer(path.read_text()))
        if not ELSEWHERE.search(match.group(1))
    ]


@pytest.mark.parametrize("source", _examples())
def test_example_runs(source: str) -> None:
    exec(compile(source, "<example>", "exec"), {"__name__": "example"})
