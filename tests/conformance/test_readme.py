"""What the README and the client's documentation promise."""

import re
from pathlib import Path

import pytest

from tests.conformance.brokers import RunningBroker

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("transactional_id", "ShareConsumer")
"""What our broker cannot do yet: test_our_transactions and test_our_share_consumer run those."""


def examples(*words: str, is_with: bool) -> list[object]:
    """Return the examples that have one of these words in them, or those that have none."""
    return [
        pytest.param(match.group(1), id=f"{name}-{number}")
        for name in ("README.md", "docs/client.md")
        for number, match in enumerate(BLOCK.finditer((ROOT / name).read_text()))
        if any(word in match.group(1) for word in words) is is_with
    ]


def run_example(example: str, bootstrap_servers: str) -> None:
    exec(example.replace("localhost:9092", bootstrap_servers), {})


@pytest.mark.parametrize("example", examples(*ELSEWHERE, is_with=False))
def test_an_example_works(broker: RunningBroker, example: str) -> None:
    run_example(example, broker.bootstrap_servers)
