"""Faults of the node's disks."""

from random import Random
from typing import TYPE_CHECKING, Final

from moldau.simulation.faults.kind import Aftermath, FaultKind, seconds_up_to
from moldau.simulation.faults.processes import ABSENCE_SECONDS_MAX
from moldau.simulation.faults.script import ScriptedFault

if TYPE_CHECKING:
    from moldau.simulation.run import SimulatedRun

FULL_SECONDS_MAX: Final = 5.0
STALL_SECONDS_MAX: Final = 4.0
ROOM_BYTES_MAX: Final = 4096
ROTTEN_BITS_MAX: Final = 8


def _draw_failure(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {
        "seconds": seconds_up_to(random, FULL_SECONDS_MAX),
        "absence": seconds_up_to(random, ABSENCE_SECONDS_MAX),
    }


def _fail(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    """Have the disk operation that is under way fail; some time later the machine is mended.

    The node may take the directory offline or end. What its page cache shows then need not be on
    the device, ever: so the mended machine has been without power, where a run can bear that.
    """
    disk = run.disk_in_use
    assert disk is not None, "it is tied to an operation of a disk"
    disk.fail()
    after.forgive()
    seconds = fault.amount("seconds")
    after.node_ends(seconds + fault.amount("absence"))  # if it does

    def mend() -> None:
        if run.may_lose_power:
            run.machine.lose_power()
        else:
            run.kill_node()
        after.node_ends(fault.amount("absence"))

    after.lasts(seconds, mend)


def _draw_full(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {
        "seconds": seconds_up_to(random, FULL_SECONDS_MAX),
        "room": random.randrange(ROOM_BYTES_MAX),
    }


def _fill(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    room = int(fault.amount("room"))
    for disk in run.machine.disks.values():
        disk.capacity_bytes = disk.used_bytes() + room
    after.forgive()

    def empty() -> None:
        for disk in run.machine.disks.values():
            disk.capacity_bytes = None

    after.lasts(fault.amount("seconds"), empty)


def _draw_stall(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {"seconds": seconds_up_to(random, STALL_SECONDS_MAX)}


def _stall(run: "SimulatedRun", fault: ScriptedFault, _after: Aftermath) -> None:
    run.machine.stall(fault.amount("seconds"))


def _draw_machine(_random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {}


def _chill(run: "SimulatedRun", _fault: ScriptedFault, _after: Aftermath) -> None:
    for _, disk in sorted(run.machine.disks.items()):
        for path in disk.file_paths():
            disk.chill(path)


def _draw_rot(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    target, details = _draw_failure(random, run)
    del details["seconds"]
    return target, {
        **details,
        "bits": random.randint(1, ROTTEN_BITS_MAX),
    }


def _rot(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    """Lose power, and find bits flipped in what was not synced, if the cache has such records."""
    for _, disk in sorted(run.machine.disks.items()):
        disk.rot(int(fault.amount("bits")))
    if run.disk_in_use is None:
        run.machine.lose_power()
    else:
        run.disk_in_use.lose_power(after=0)
    after.node_ends(fault.amount("absence"))


DISK_FAULTS: Final = (
    FaultKind(
        "eio",
        "one operation on a disk fails, as an append that is half written; the machine is mended"
        " and the node started anew some seconds later",
        ("disk", "append"),
        _draw_failure,
        _fail,
        every_seconds=40.0,
    ),
    FaultKind(
        "failed-sync",
        "one sync fails and loses what it should have written, which reads go on to show; the"
        " machine is mended with its power off, which spares what was acknowledged",
        ("sync",),
        _draw_failure,
        _fail,
        every_seconds=40.0,
    ),
    FaultKind(
        "disk-full",
        "the disks have no room for some seconds",
        ("append", "disk"),
        _draw_full,
        _fill,
        every_seconds=30.0,
    ),
    FaultKind(
        "stall",
        "the devices hang for some seconds, and then go on",
        ("disk", "sync", "step"),
        _draw_stall,
        _stall,
    ),
    FaultKind(
        "cold",
        "the page cache of what is on the disks is dropped: reads wait for the device",
        ("operation", "step"),
        _draw_machine,
        _chill,
        every_seconds=10.0,
    ),
    FaultKind(
        "rot",
        "the machine loses power, and bits of what was not synced are flipped on the device",
        ("append", "sync"),
        _draw_rot,
        _rot,
        loses_power=True,
        every_seconds=25.0,
    ),
)
