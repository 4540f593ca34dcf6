"""Each row of the table of `Standing`, as text: tests/golden/quorum."""

import pytest

from tests.golden_text import FOLDER, check_golden
from tests.unit.consensus.scenario import Scenario

NAMES = sorted(path.stem for path in (FOLDER / "quorum").glob("*.txt"))


@pytest.mark.parametrize("name", NAMES)
def test_scenario(name: str) -> None:
    text = (FOLDER / "quorum" / f"{name}.txt").read_text()
    lines = [*Scenario().run(text), ""]
    check_golden(name, "\n".join(lines), folder="quorum")


def test_there_are_scenarios() -> None:
    assert len(NAMES) >= 10
