"""`python -m tools.simulate SECONDS [PROCESSES]`: simulate seed after seed, in several processes.

Every seed leaves a line in .cache/simulated.jsonl, with a digest of the sources that it ran with:
the next call goes on with the seeds that follow, and a change to what is simulated starts anew.
At the end the sums are a row of docs/proofs/simulator.md.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tools.soak import commit_name, machine_name

LEDGER = Path(".cache/simulated.jsonl")
PAGE = Path("docs/proofs/simulator.md")
SOURCES = Path("src/moldau")
NOT_SIMULATED = ("cli", "pipelines", "testing")
SEED_HOURS = "0.05"
COLUMNS = (
    *("sources", "seeds", "CPU-hours", "node-hours", "node-hours per CPU-hour", "operations"),
    *("per second outside outages", "faults (in flight)", "violations", "date", "commit"),
    "machine",
)
HEADER = f"""\
# Proofs of the simulator

Written by `make simulate`: one row for each state of the sources, replaced when more of it ran.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
"""


def main(arguments: Sequence[str]) -> int:
    """Simulate for so long, in so many processes, one for each core by default."""
    seconds = float(arguments[0])
    processes = int(arguments[1]) if len(arguments) > 1 else os.cpu_count() or 1
    digest = digest_of(SOURCES)
    done = read_ledger(LEDGER, digest)
    print(f"sources {digest}: {len(done)} seeds are done", flush=True)
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    try:
        _simulate(digest, _seeds(done), time.monotonic() + seconds, processes)
    except KeyboardInterrupt:
        print("interrupted: what was done counts", flush=True)
    done = read_ledger(LEDGER, digest)
    if not done:
        return 0
    row = make_row(digest, done)
    note_row(PAGE, digest, row)
    print(row)
    return any(line["violations"] for line in done.values())


def digest_of(sources: Path) -> str:
    """Return a digest of everything that a simulated node is made of, and the world."""
    digest = blake2b(digest_size=6)
    for path in sorted(sources.rglob("*")):
        known = path.suffix in (".py", ".pyx", ".pxd", ".pxi", ".h")
        if known and path.relative_to(sources).parts[0] not in NOT_SIMULATED:
            digest.update(f"{path.relative_to(sources)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def read_ledger(ledger: Path, digest: str) -> dict[int, dict[str, Any]]:
    """Return what is noted of each seed that ran with these sources."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    noted = [json.loads(line) for line in lines]
    return {each["seed"]: each["result"] for each in noted if each["sources"] == digest}


def _seeds(done: dict[int, dict[str, Any]]) -> Iterator[int]:
    seed = 0
    while True:
        seed += 1
        if seed not in done:
            yield seed


def _simulate(digest: str, seeds: Iterator[int], until: float, processes: int) -> None:
    running: dict[int, subprocess.Popen[str]] = {}
    try:
        while running or time.monotonic() < until:
            while len(running) < processes and time.monotonic() < until:
                seed = next(seeds)
                running[seed] = _start(seed)
            for seed, process in list(running.items()):
                if process.poll() is not None:
                    _finish(digest, seed, running.pop(seed))
            time.sleep(0.1)
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


def _start(seed: int) -> "subprocess.Popen[str]":
    words = ["simulate", "--seed", str(seed), "--hours", SEED_HOURS, "--json"]
    command = [sys.executable, "-m", "moldau.cli", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(digest: str, seed: int, process: "subprocess.Popen[str]") -> None:
    out, errors = process.communicate()
    lines = out.splitlines()
    try:
        result = json.loads(lines[-1])
    except (IndexError, ValueError):
        sys.exit(f"simulate: seed {seed} ended with {process.returncode}: {errors or out}")
    for text in result["violations"].values():
        print(f"seed {seed}: {text}", flush=True)
    with LEDGER.open("a") as ledger:
        ledger.write(json.dumps({"sources": digest, "seed": seed, "result": result}) + "\n")


def make_row(digest: str, done: dict[int, dict[str, Any]]) -> str:
    """Return the row of the page for these seeds."""
    faults: Counter[str] = Counter()
    in_flight: Counter[str] = Counter()
    for line in done.values():
        faults.update(line["faults"])
        in_flight.update(line["faults_in_flight"])
    hours = sum(line["hours"] for line in done.values())
    cpu_hours = sum(line["cpu_hours"] for line in done.values())
    serving = hours - sum(line["outage_hours"] for line in done.values())
    operations = sum(sum(line["acknowledged"].values()) for line in done.values())
    broken = sorted(seed for seed, line in done.items() if line["violations"])
    told = ", ".join(f"{kind} {faults[kind]} ({in_flight[kind]})" for kind in sorted(faults))
    cells = [
        digest,
        len(done),
        f"{cpu_hours:.2f}",
        f"{hours:.1f}",
        f"{hours / max(cpu_hours, 1e-9):.1f}",
        operations,
        f"{operations / max(serving * 3600, 1):.1f}",
        told,
        f"{len(broken)}: seeds {', '.join(map(str, broken))}" if broken else "0",
        datetime.now(UTC).date().isoformat(),
        commit_name(),
        machine_name(),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def note_row(page: Path, digest: str, row: str) -> None:
    """Put the row on the page, in the place of an earlier one of the same sources."""
    lines = page.read_text().splitlines() if page.exists() else []
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| sources ")]
    kept = [line for line in rows if not line.startswith(f"| {digest} ")]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(HEADER + "\n".join([*kept, row, ""]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
