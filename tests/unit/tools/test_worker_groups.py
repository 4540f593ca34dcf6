"""Files share a worker where they share something expensive; the longest begin."""

from pathlib import Path

from tests import worker_groups
from tests.worker_groups import GROUPS, LONGEST, group_of

ROOT = Path(worker_groups.__file__).parents[1]


def test_what_is_listed_is_there() -> None:
    files = {*GROUPS, *(set(LONGEST) - set(GROUPS.values()))}
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []


def test_a_test_is_in_its_files_group() -> None:
    assert group_of("tests/a.py::test_one[x::y]") == "tests/a.py"
    file, group = next(iter(GROUPS.items()))
    assert group_of(f"{file}::test_one") == group
