"""Runs the model of the log."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from moldau.kernel.disk import DiskFailedError
from moldau.simulation.disk import SimulatedDisk
from tests.unit.log.logs import TestLog, batch_of
from tests.unit.log.model import CONFIG, LogMachine

EXAMPLES = int(os.environ.get("MOLDAU_LOG_EXAMPLES", "120"))


@pytest.mark.long
def test_the_log_is_the_list() -> None:
    run_state_machine_as_test(
        LogMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_failed_write_is_not_swallowed() -> None:
    log = TestLog(SimulatedDisk(1), CONFIG)
    log.add()
    log.append(batch_of())
    log.disk.fail("append")
    with pytest.raises(DiskFailedError):
        log.log.write()
