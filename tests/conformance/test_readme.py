"""What the README and the client's documentation promise."""

import re
from pathlib import Path

import pytest

from tests.conformance.brokers import IS_APACHE, RunningBroker

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_SERVED_YET = re.compile("group_id")  # "$^" when our broker serves groups
EXAMPLES = [
    pytest.param(match.group(1), id=f"{name}-{number}")
    for name in ("README.md", "docs/client.md")
    for number, match in enumerate(BLOCK.finditer((ROOT / name).read_text()))
    if IS_APACHE or not NOT_SERVED_YET.search(match.group(1))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_works(broker: RunningBroker, example: str) -> None:
    address = broker.bootstrap_servers
    exec(example.replace("localhost:9092", address), {})
