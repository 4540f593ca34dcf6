"""Lists of the tests that pytest finds, for tools/test_ids.py."""

import json
import os
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

_left_out = pytest.StashKey[list[pytest.Item]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin a list."""
    config.stash[_left_out] = []


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note what a stage leaves to another one."""
    if items:
        items[0].config.stash[_left_out] += items


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Write the list where MOLDAU_TEST_LIST says; of several workers the first one does."""
    yield
    path = os.environ.get("MOLDAU_TEST_LIST")
    if path and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        others = [each for each in config.stash[_left_out] if not each.get_closest_marker("soak")]
        lists = {"chosen": [i.nodeid for i in items], "left_out": [i.nodeid for i in others]}
        Path(path).write_text(json.dumps(lists))
