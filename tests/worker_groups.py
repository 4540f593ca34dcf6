"""Which tests of a stage share a worker, and which groups of them begin.

Tests of one file stay together, because they share fixtures. Files that share something expensive
are one group. With two workers, a long group that comes last would leave the other one idle.
"""

from fnmatch import fnmatch
from typing import Final

import pytest
from xdist.scheduler import LoadGroupScheduling

GROUPS: Final[dict[str, str]] = {}
"""Patterns of files, and the group that they are in."""

LONGEST: Final[dict[str, int]] = {}
"""Groups and files that take long, with their seconds; all others come behind them."""


class GroupScheduling(LoadGroupScheduling):
    """Hands out a group at a time; a test with a mark `xdist_group` goes by that."""

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        return group_of(nodeid) if scope == nodeid else scope


def group_of(nodeid: str) -> str:
    """Return the group of a test: its file, or the one that its file is in."""
    file = nodeid.split("::", 1)[0]
    return next((group for pattern, group in GROUPS.items() if fnmatch(file, pattern)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupScheduling | None:
    """Schedule by groups where xdist is asked for them."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark unit tests, and put the longest groups first."""
    for item in items:
        if item.nodeid.startswith("tests/unit/"):
            item.add_marker("unit")
    items.sort(key=lambda item: -LONGEST.get(group_of(item.nodeid), 0))
