"""What the README promises."""

import re
from pathlib import Path

import pytest

from tests.conformance.brokers import RunningBroker

README = (Path(__file__).parents[2] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_works(broker: RunningBroker, example: str) -> None:
    address = broker.bootstrap_servers
    exec(example.replace("localhost:9092", address), {})
