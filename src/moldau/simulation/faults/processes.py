"""Faults of processes: they are killed, stopped, paused, or lose their machine's power."""

from random import Random
from typing import TYPE_CHECKING, Final

from moldau.simulation.faults.kind import Aftermath, FaultKind, seconds_up_to
from moldau.simulation.faults.script import ScriptedFault

if TYPE_CHECKING:
    from moldau.simulation.run import SimulatedRun

ABSENCE_SECONDS_MAX: Final = 3.0
PAUSE_SECONDS_MAX: Final = 12.0
"""Longer than a session of a member lasts."""
OPERATIONS_OF_REPLACE: Final = 5
POINTS: Final = ("disk", "append", "sync", "step")


def _draw(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {"absence": seconds_up_to(random, ABSENCE_SECONDS_MAX)}


def _kill(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    run.kill_node()
    after.node_ends(fault.amount("absence"))


def _stop(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    if run.node is not None:
        run.node.stop()
    after.node_ends(fault.amount("absence"))


def _draw_power_loss(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    target, details = _draw(random, run)
    return target, {**details, "later": random.randrange(OPERATIONS_OF_REPLACE)}


def _lose_power(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    disk = run.disk_in_use
    if disk is None:
        run.machine.lose_power()
    else:
        disk.lose_power(after=int(fault.amount("later")))
    after.node_ends(fault.amount("absence"))


def _draw_pause(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {"seconds": seconds_up_to(random, PAUSE_SECONDS_MAX)}


def _pause(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    node = run.node
    if node is not None:
        run.node_is_down()
        node.pause()

        def resume() -> None:
            node.resume()
            run.node_is_back()

        after.lasts(fault.amount("seconds"), resume)


def _draw_client(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return random.choice(run.client_names), {"absence": seconds_up_to(random, ABSENCE_SECONDS_MAX)}


def _kill_client(run: "SimulatedRun", fault: ScriptedFault, _after: Aftermath) -> None:
    run.kill_client(fault.target, fault.amount("absence"))


PROCESS_FAULTS: Final = (
    FaultKind(
        "kill",
        "kill -9 of the node, also in the middle of an operation on its disk; the page cache stays",
        POINTS,
        _draw,
        _kill,
    ),
    FaultKind(
        "power-loss",
        "the machine loses power, also between the parts of an operation; what was synced stays",
        POINTS,
        _draw_power_loss,
        _lose_power,
        loses_power=True,
    ),
    FaultKind("stop", "the node stops in good order, as SIGTERM has it", ("step",), _draw, _stop),
    FaultKind(
        "pause",
        "the node stands still, as SIGSTOP has it, also longer than members' sessions last",
        ("step",),
        _draw_pause,
        _pause,
        every_seconds=40.0,
    ),
    FaultKind(
        "client-kill",
        "a client is killed, and starts again under another name",
        ("operation", "step"),
        _draw_client,
        _kill_client,
    ),
)
