"""Runs in a process: `replay SCRIPT`, or `search FAULTS SECONDS CLIENTS SEEDS LAWS SHRINKING`.

Each run is told as one line of JSON. A search ends with the first run that breaks one of the laws,
and tells it with a script of what has happened, which is shrunk for some seconds.
"""

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from moldau.client.errors import UndeliveredWarning
from moldau.simulation.faults.injector import Injector, ScriptPlan, scripted
from moldau.simulation.faults.script import FaultScript
from moldau.simulation.faults.shrink import Shrinker, run_script
from moldau.simulation.faults.swarm import Swarm
from moldau.simulation.run import RunOutcome, SimulatedRun

NO_FAULTS = "none"


def main(words: Sequence[str]) -> None:
    """Do what is asked for."""
    # Clients are killed on purpose, with records that are not delivered.
    warnings.simplefilter("ignore", UndeliveredWarning)
    match words:
        case ["replay", path]:
            run, _ = scripted(FaultScript.parse(Path(path).read_text()))
            outcome = run.execute()
            tell({"violation": outcome.violation, "law": outcome.law})
        case ["search", faults, seconds, clients, seeds, laws, shrinking]:
            search(
                () if faults == NO_FAULTS else faults.split(),
                FaultScript(0, float(seconds), clients=tuple(clients.split())),
                int(seeds),
                laws.split(", "),
                float(shrinking),
            )
        case _:
            sys.exit(__doc__)


def search(
    kinds: Sequence[str], like: FaultScript, seeds: int, laws: Sequence[str], shrinking: float
) -> None:
    """Run one seed after the other, until a law is broken."""
    for seed in range(1, seeds + 1):
        injector = Injector(Swarm(kinds) if kinds else ScriptPlan(()))
        run = SimulatedRun(seed, seconds=like.seconds, faults=injector, clients=like.clients)
        outcome = run.execute()
        script = FaultScript(seed, like.seconds, tuple(injector.happened), like.clients)
        told = {"violation": outcome.violation, "law": outcome.law, "script": str(script)}
        is_found = breaks(outcome, laws)
        if is_found:
            told["shrunk"] = str(shrink(script, outcome.law, laws, until=monotonic() + shrinking))
        tell(told)
        if is_found:
            return


def breaks(outcome: RunOutcome, laws: Sequence[str]) -> bool:
    """Whether a run breaks one of these laws."""
    return any(law in outcome.violation for law in laws)


def shrink(script: FaultScript, law: str, laws: Sequence[str], *, until: float) -> FaultScript:
    """Return a shorter script that breaks the same law."""

    def run(script: FaultScript) -> tuple[RunOutcome, FaultScript]:
        outcome, happened = run_script(script)
        if not breaks(outcome, laws):
            outcome.violation = ""  # it is broken by what is left out
        return outcome, happened

    return Shrinker(script, law, is_over=lambda: monotonic() > until, run=run).shrink()


def tell(what: object) -> None:
    """Write a line."""
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
