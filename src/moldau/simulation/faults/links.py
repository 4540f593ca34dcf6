"""Faults of the network between clients' machines and the node, and of clocks."""

from random import Random
from typing import TYPE_CHECKING, Final

from moldau.simulation.faults.kind import Aftermath, FaultKind, seconds_up_to
from moldau.simulation.faults.script import ScriptedFault
from moldau.simulation.scheduler import MILLISECOND

if TYPE_CHECKING:
    from moldau.simulation.run import SimulatedRun

CUT_SECONDS_MAX: Final = 15.0
SLOW_SECONDS_MAX: Final = 10.0
LATENCY_MS_MAX: Final = 150.0
LOSS_RATE_MAX: Final = 0.3
JUMP_SECONDS_MAX: Final = 900.0
DRIFT_PPM_MAX: Final = 2000.0
DRIFT_SECONDS_MAX: Final = 30.0
WAYS: Final = ("there", "back", "both")
EVENTS: Final = ("operation", "step")


def _draw_cut(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return random.choice(run.client_machines), {
        "seconds": seconds_up_to(random, CUT_SECONDS_MAX),
        "way": random.choice(WAYS),
    }


def _ways(run: "SimulatedRun", fault: ScriptedFault) -> list[tuple[str, str]]:
    there = (fault.target, run.machine.name)
    match fault.text("way"):
        case "there":
            return [there]
        case "back":
            return [there[::-1]]
        case _:
            return [there, there[::-1]]


def _cut(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    network = run.world.network
    ways = _ways(run, fault)
    for way in ways:
        network.cut(*way)

    def heal() -> None:
        for way in ways:
            network.heal(*way)

    after.lasts(fault.amount("seconds"), heal)


def _draw_slow(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return random.choice(run.client_machines), {
        "seconds": seconds_up_to(random, SLOW_SECONDS_MAX),
        "way": random.choice(WAYS),
        "latency_ms": seconds_up_to(random, LATENCY_MS_MAX),
        "loss": f"{random.random() * LOSS_RATE_MAX:.3f}",
    }


def _slow(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    links = [run.world.network.link(*way) for way in _ways(run, fault)]
    for link in links:
        link.latency_ns += int(fault.amount("latency_ms") * MILLISECOND)
        link.tail_rate += fault.amount("loss")

    def heal() -> None:
        for link in links:
            link.latency_ns -= int(fault.amount("latency_ms") * MILLISECOND)
            link.tail_rate -= fault.amount("loss")

    after.lasts(fault.amount("seconds"), heal)


def _draw_link(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return random.choice(run.client_machines), {}


def _reset(run: "SimulatedRun", fault: ScriptedFault, _after: Aftermath) -> None:
    run.world.network.reset(fault.target, run.machine.name)


def _draw_refusal(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return run.machine.name, {"seconds": seconds_up_to(random, SLOW_SECONDS_MAX)}


def _refuse(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    host = run.machine.host
    host.refuses = True
    after.lasts(fault.amount("seconds"), lambda: setattr(host, "refuses", False))


def _draw_jump(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    seconds = random.choice((1.0, 10.0, JUMP_SECONDS_MAX)) * (2 * random.random() - 1)
    return _any_machine(random, run), {"milliseconds": int(seconds * 1000)}


def _jump(run: "SimulatedRun", fault: ScriptedFault, _after: Aftermath) -> None:
    run.world.machine(fault.target).clock.jump(int(fault.amount("milliseconds")))


def _draw_drift(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return _any_machine(random, run), {
        "seconds": seconds_up_to(random, DRIFT_SECONDS_MAX),
        "ppm": f"{-random.random() * DRIFT_PPM_MAX:.1f}",
    }


def _drift(run: "SimulatedRun", fault: ScriptedFault, after: Aftermath) -> None:
    clock = run.world.machine(fault.target).clock
    clock.drift(fault.amount("ppm"))
    after.lasts(fault.amount("seconds"), lambda: clock.drift(0))


def _any_machine(random: Random, run: "SimulatedRun") -> str:
    return random.choice((run.machine.name, run.machine.name, *run.client_machines))


def _draw_cut_off(random: Random, run: "SimulatedRun") -> tuple[str, dict[str, object]]:
    return random.choice(run.client_machines), {"way": random.choice(WAYS)}


def _cut_off(run: "SimulatedRun", fault: ScriptedFault, _after: Aftermath) -> None:
    run.cut_off[fault.target] = None
    for way in _ways(run, fault):
        run.world.network.cut(*way)


NETWORK_FAULTS: Final = (
    FaultKind(
        "cut-off",
        "a client's machine is cut off just when all else is healed, and stays so",
        ("end",),
        _draw_cut_off,
        _cut_off,
    ),
    FaultKind(
        "cut",
        "nothing arrives between a client's machine and the node, one way or both",
        EVENTS,
        _draw_cut,
        _cut,
    ),
    FaultKind(
        "slow",
        "a link has long delays, and many segments are lost at first",
        EVENTS,
        _draw_slow,
        _slow,
    ),
    FaultKind(
        "reset",
        "all connections of a client's machine are reset, in the middle of what they carry",
        EVENTS,
        _draw_link,
        _reset,
        every_seconds=6.0,
    ),
    FaultKind(
        "refuse",
        "the node's machine refuses connections for some seconds",
        EVENTS,
        _draw_refusal,
        _refuse,
    ),
)
CLOCK_FAULTS: Final = (
    FaultKind(
        "jump",
        "a wall clock jumps forward or back, up to a quarter of an hour",
        EVENTS,
        _draw_jump,
        _jump,
    ),
    FaultKind(
        "drift",
        "both clocks of a machine run slow; not fast, as the law of locks trusts their length",
        EVENTS,
        _draw_drift,
        _drift,
        every_seconds=30.0,
    ),
)
