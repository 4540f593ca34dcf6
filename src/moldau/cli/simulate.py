"""`moldau simulate`: run whole nodes in a simulated world, with faults, and check the laws."""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import FAILED, FINE, INTERRUPTED, CommandError, Parser, UsageError, run
from moldau.cli.printing import ProgressLine, counted, print_json, table
from moldau.cli.target import add_verbose_option

if TYPE_CHECKING:
    from moldau.simulation.faults.injector import Injector
    from moldau.simulation.faults.script import FaultScript
    from moldau.simulation.run import RunOutcome, SimulatedRun
    from moldau.simulation.tally import RunTally

SEEDS: Final = 10
HOURS: Final = 0.05
SHRINK_SECONDS: Final = 60.0
EXAMPLES = """examples:
  moldau simulate                              ten seeds, three simulated minutes each
  moldau simulate --seeds 100 --faults kill,power-loss
  moldau simulate --seed 7 --trace --node node-1
  moldau simulate --script moldau-seed-7.script

A seed that breaks a law prints the command that replays it, and is shrunk to a script.
Ctrl-C ends early and prints what was done. The exit code is 1 if a law was broken."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau simulate",
        description="Run a node, its clients and faults in a simulated world, from a seed.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--seeds", type=int, metavar="N", help=f"how many (default: {SEEDS})")
    parser.add_argument("--seed", type=int, metavar="S", help="this one alone")
    parser.add_argument(
        "--hours", type=float, metavar="H", help=f"how long each lasts (default: {HOURS})"
    )
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="how many nodes")
    parser.add_argument(
        "--faults", metavar="LIST", help="only these kinds of faults, or `none` (default: by seed)"
    )
    parser.add_argument("--script", metavar="FILE", help="replay the faults of a script")
    parser.add_argument("--trace", action="store_true", help="print all events, with their times")
    parser.add_argument("--node", metavar="NAME", help="only those of this machine")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_verbose_option(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int:
    _check(options)
    from moldau.simulation.tally import RunTally

    tally = RunTally()
    try:
        with _interrupts() as is_interrupted:
            for simulated, injector in _runs(options):
                if options.trace:
                    _check_node(options, simulated)
                _execute(simulated, tally, is_interrupted)
                if options.trace:
                    _print_trace(options, simulated)
                if simulated.outcome.violation:
                    _report(options, simulated.outcome, injector, is_interrupted)
    except KeyboardInterrupt:
        _print_tally(options, tally)
        return INTERRUPTED
    _print_tally(options, tally)
    return FAILED if tally.violations else FINE


def _check(options: argparse.Namespace) -> None:
    """Refuse what makes no sense together, and faults that there are not."""
    from moldau.simulation.faults.injector import FAULT_KINDS

    if options.nodes != 1:
        raise UsageError(f"--nodes {options.nodes}: there are no clusters yet, 1 is allowed")
    given = [name for name in ("seeds", "seed", "script") if getattr(options, name) is not None]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]}: give one of them")
    if options.seeds is not None and options.seeds < 1:
        raise UsageError(f"--seeds {options.seeds}: at least 1")
    if options.hours is not None and not options.hours > 0:
        raise UsageError(f"--hours {options.hours:g}: more than 0")
    if options.script is not None:
        for name in ("hours", "faults"):
            if getattr(options, name) is not None:
                raise UsageError(f"--script and --{name}: the script says that")
    if options.trace and options.seed is None and options.script is None:
        raise UsageError("--trace: of one run, with --seed or --script")
    if options.node is not None and not options.trace:
        raise UsageError("--node: what --trace prints, so give both")
    for name in _kinds(options) or ():
        if name not in FAULT_KINDS:
            known = ", ".join(FAULT_KINDS)
            raise UsageError(f"--faults: there is no fault {name!r}; there are {known}, or none")


def _kinds(options: argparse.Namespace) -> list[str] | None:
    """Return the wanted kinds of faults; None if the seed chooses."""
    if options.faults is None:
        return None
    if options.faults == "none":
        return []
    return [name.strip() for name in options.faults.split(",")]


def _runs(options: argparse.Namespace) -> "Iterator[tuple[SimulatedRun, Injector]]":
    from moldau.simulation.faults.injector import scripted
    from moldau.simulation.faults.swarm import swarming

    if options.script is not None:
        script = _read_script(options.script)
        yield scripted(script, keeps_text=options.trace)
        return
    seconds = 3600 * (options.hours or HOURS)
    seeds = range(1, (options.seeds or SEEDS) + 1) if options.seed is None else [options.seed]
    for seed in seeds:
        yield swarming(seed, seconds, _kinds(options), keeps_text=options.trace)


def _read_script(file: str) -> "FaultScript":
    from moldau.simulation.faults.injector import ScriptPlan
    from moldau.simulation.faults.script import FaultScript, ScriptError

    try:
        script = FaultScript.parse(Path(file).read_text(encoding="utf-8"))
        ScriptPlan(script.faults)
    except UnicodeDecodeError:
        raise CommandError(f"{file}: it is not UTF-8 text") from None
    except ScriptError as error:
        raise CommandError(f"{file}: {error}") from None
    return script


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Have Ctrl-C end a run between two steps, and not within one; a second one ends all."""
    found: list[int] = []

    def note(number: int, _frame: object) -> None:
        found.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(found)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _killed_producers() -> Iterator[None]:
    """Say nothing of records that producers have not delivered when they were killed."""
    import warnings

    from moldau.client.errors import UndeliveredWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndeliveredWarning)
        yield


def _execute(
    simulated: "SimulatedRun", tally: "RunTally", is_interrupted: Callable[[], bool]
) -> None:
    """Run, and add the run to the tally, whole or not."""
    progress = ProgressLine()
    world, outcome = simulated.world, simulated.outcome

    def look() -> None:
        if is_interrupted():
            raise KeyboardInterrupt
        if world.scheduler.steps % 1024 == 0:
            progress(
                f"seed {world.seed} at {world.seconds:.0f} s,"
                f" {counted(outcome.faults.total(), 'fault')};"
                f" {counted(tally.seeds, 'seed')} before,"
                f" {counted(len(tally.violations), 'violation')}"
            )

    world.after_step.append(look)
    began = time.process_time()
    with _killed_producers():
        try:
            simulated.execute()
        finally:
            tally.add(outcome, time.process_time() - began)
            progress.clear()


def _report(
    options: argparse.Namespace,
    outcome: "RunOutcome",
    injector: "Injector",
    is_interrupted: Callable[[], bool],
) -> None:
    """Say what was found and how to see it again, and look for less that shows it."""
    from moldau.simulation.faults.script import FaultScript
    from moldau.simulation.faults.shrink import Shrinker

    if options.json:
        return
    print(f"VIOLATION {outcome.violation}")
    print(f"  replay: {_replay(options, outcome.seed)}", flush=True)
    if options.script is not None or options.trace:
        return
    seconds = 3600 * (options.hours or HOURS)
    script = FaultScript(
        outcome.seed, seconds, tuple(injector.happened), tuple(injector.run.client_names)
    )
    until = time.monotonic() + SHRINK_SECONDS
    shrinker = Shrinker(script, outcome.law, lambda: time.monotonic() > until or is_interrupted())
    with _killed_producers():
        script = shrinker.shrink()
    if is_interrupted():
        raise KeyboardInterrupt
    file = f"moldau-seed-{outcome.seed}.script"
    Path(file).write_text(str(script), encoding="utf-8")
    told = f"{counted(len(script.faults), 'fault')} in {script.seconds:g} s"
    print(f"  shrunk in {counted(shrinker.runs, 'run')} to {told}:")
    print(f"  replay: moldau simulate --script {file}", flush=True)


def _replay(options: argparse.Namespace, seed: int) -> str:
    if options.script is not None:
        return f"moldau simulate --script {shlex.quote(options.script)}"
    words = ["moldau simulate", f"--seed {seed}", f"--hours {options.hours or HOURS:g}"]
    if options.faults is not None:
        words.append(f"--faults {shlex.quote(options.faults)}")
    return " ".join(words)


def _check_node(options: argparse.Namespace, simulated: "SimulatedRun") -> None:
    if options.node is not None and options.node not in simulated.machine_names:
        known = ", ".join(simulated.machine_names)
        raise UsageError(f"--node {options.node}: there is no such machine; there are {known}")


def _print_trace(options: argparse.Namespace, simulated: "SimulatedRun") -> None:
    for line in simulated.world.trace.lines():
        if options.node is None or line.machine.partition("/")[0] == options.node:
            print(line)


def _print_tally(options: argparse.Namespace, tally: "RunTally") -> None:
    kinds = sorted(tally.faults)
    if options.json:
        print_json(
            {
                "seeds": tally.seeds,
                "hours": tally.seconds / 3600,
                "cpu_hours": tally.cpu_seconds / 3600,
                "outage_hours": tally.outage_seconds / 3600,
                "acknowledged": dict(sorted(tally.acknowledged.items())),
                "operations_per_second": tally.operations_per_second,
                "faults": {kind: tally.faults[kind] for kind in kinds},
                "faults_in_flight": {kind: tally.faults_in_flight[kind] for kind in kinds},
                "violations": {str(seed): text for seed, text in tally.violations.items()},
                "node_hours_per_cpu_hour": tally.speed,
            }
        )
        return
    out = sys.stderr if options.trace else sys.stdout
    rows = [[kind, tally.faults[kind], tally.faults_in_flight[kind]] for kind in kinds]
    if rows:
        print(table(["fault", "times", "in flight"], rows), file=out)
    if tally.acknowledged:
        rows = [[kind, count] for kind, count in sorted(tally.acknowledged.items())]
        print(table(["operation", "acknowledged"], rows), file=out)
    print(
        f"{counted(tally.seeds, 'seed')}, {tally.seconds / 3600:.3f} simulated hours,"
        f" {counted(tally.acknowledged.total(), 'operation')},"
        f" {tally.operations_per_second:.1f} per second outside outages,"
        f" {counted(tally.faults.total(), 'fault')},"
        f" {tally.faults_in_flight.total()} of them in flight,"
        f" {counted(len(tally.violations), 'violation')},"
        f" {tally.speed:.1f} node-hours per CPU-hour",
        file=out,
    )
