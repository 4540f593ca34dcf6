"""The examples that need the fixture, run as the tests that they are."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(match.group(1), id=f"{name}-{number}")
    for name in ("README.md", "docs/testing.md")
    for number, match in enumerate(BLOCK.finditer((ROOT / name).read_text()))
    if "def test_" in match.group(1)
]

# kafka-python reads its resources in a way that Python 3.11 would not have any more.
INI = r"""
[pytest]
filterwarnings =
    error
    ignore:(open|read)_text is deprecated:DeprecationWarning
"""


@pytest.mark.parametrize("source", EXAMPLES)
def test_an_example_passes(pytester: pytest.Pytester, source: str) -> None:
    pytester.makeini(INI)
    pytester.makepyfile(source)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_there_are_examples_for_three_clients() -> None:
    sources = "".join(str(each.values[0]) for each in EXAMPLES)
    for client in ("confluent_kafka", "aiokafka", "kafka"):
        assert f"from {client} import" in sources
