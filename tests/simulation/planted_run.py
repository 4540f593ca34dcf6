"""Runs in a process: `replay SCRIPT`, or `search FAULTS SECONDS CLIENTS SEEDS LAWS`.

Each run is told as one line of JSON. A search ends with the first run that breaks one of the laws,
and tells it with a script of what has happened.
"""

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from moldau.client.errors import UndeliveredWarning
from moldau.simulation.faults.injector import Injector, ScriptPlan, scripted
from moldau.simulation.faults.script import Script
from moldau.simulation.faults.swarm import Swarm
from moldau.simulation.run import SimulatedRun

NO_FAULTS = "none"


def main(words: Sequence[str]) -> None:
    """Do what is asked for."""
    # Clients are killed on purpose, with records that are not delivered.
    warnings.simplefilter("ignore", UndeliveredWarning)
    match words:
        case ["replay", path]:
            run, _ = scripted(Script.parse(Path(path).read_text()))
            tell({"violation": run.execute().violation})
        case ["search", faults, seconds, clients, seeds, laws]:
            first, last = map(int, seeds.split("-"))
            search(
                () if faults == NO_FAULTS else faults.split(),
                Script(0, float(seconds), clients=tuple(clients.split())),
                range(first, last + 1),
                laws.split(", "),
            )
        case _:
            sys.exit(__doc__)


def search(kinds: Sequence[str], like: Script, seeds: Iterable[int], laws: Sequence[str]) -> None:
    """Run one seed after the other, until a law is broken."""
    for seed in seeds:
        injector = Injector(Swarm(kinds) if kinds else ScriptPlan(()))
        run = SimulatedRun(seed, seconds=like.seconds, faults=injector, clients=like.clients)
        violation = run.execute().violation
        script = Script(seed, like.seconds, tuple(injector.happened), like.clients)
        tell({"violation": violation, "script": str(script)})
        if any(law in violation for law in laws):
            return


def tell(what: object) -> None:
    """Write a line."""
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
