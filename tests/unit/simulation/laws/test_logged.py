"""Errors in the log are violations, but for those that a fault explains."""

import pytest

from moldau.simulation.laws.logged import check_error
from moldau.simulation.laws.violation import LawViolation

OFFLINE = "t-0 is offline: log directory offline: t-0/0.log: simulated failure to sync"


def test_a_disk_that_fails_takes_partitions_offline():
    check_error(OFFLINE, None, {"eio", "kill"})
    check_error("the metadata log has no room: 4 bytes left", None, {"disk-full"})


@pytest.mark.parametrize(
    ("text", "error", "faults"),
    [
        (OFFLINE, None, {"kill"}),
        ("t-0 is offline: t-0/0.log: at byte 3: the magic is not 2", None, {"eio"}),
        ("a part of the node has failed", OSError("simulated failure to sync"), {"eio"}),
        (OFFLINE, KeyError(3), {"eio"}),
    ],
)
def test_no_fault_explains_anything_else(text: str, error: BaseException | None, faults: set[str]):
    with pytest.raises(LawViolation, match="logged error: "):
        check_error(text, error, faults)
