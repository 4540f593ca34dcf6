"""What the README and the documentation of the client and of SQL promise."""

import re
from pathlib import Path

import pytest

from tests.conformance.brokers import RunningBroker

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(match.group(1), id=f"{name}-{number}")
    for name in ("README.md", "docs/client.md", "docs/sql-questions.md")
    for number, match in enumerate(BLOCK.finditer((ROOT / name).read_text()))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_works(broker: RunningBroker, example: str) -> None:
    exec(example.replace("localhost:9092", broker.bootstrap_servers), {})
