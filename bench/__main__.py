"""`python -m bench [NAME[:PART] ...]`: run the benchmarks, print ratios, store them by commit.

`--records N`, for suites that take it, is for a try: its results are not stored.
"""

import argparse
import inspect
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bench.row import Row

SUITES = (
    "broker",
    "client",
    "codec",
    "commands",
    "compaction",
    "coordination",
    "disk",
    "log",
    "records",
    "spark",
    "sql",
    "testing",
    "views",
)
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run the named suites, or all of them."""
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("suites", nargs="*", metavar="NAME[:PART]", default=SUITES)
    parser.add_argument("--records", type=int)
    given = parser.parse_args()
    named = [suite.partition(":") for suite in given.suites]
    if unknown := sorted({suite for suite, _, _ in named} - set(SUITES)):
        sys.exit(f"bench: no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    for suite, _, part in named:
        print(f"{suite}: measuring", flush=True)
        measure: Callable[..., Iterable[Row]] = import_module(f"bench.bench_{suite}").rows
        rows: list[Row] = []
        fewer = {} if given.records is None else {"records": given.records}
        if fewer.keys() - inspect.signature(measure).parameters:
            sys.exit(f"bench: {suite} has no --records")
        try:
            rows.extend(measure(*filter(None, [part]), **fewer))
        finally:
            # What was measured is kept, whatever became of the rest.
            if rows:
                print(_table(rows))
                if not fewer:
                    _store(suite, rows)
    return 0


def _table(rows: list[Row]) -> str:
    lines = [("what", "against", "ours", "theirs", "unit", "ratio", "goal", "")]
    for row in rows:
        ours, theirs, ratio = (f"{value:.4g}" for value in (row.ours, row.theirs, row.ratio))
        verdict = "" if row.ratio >= row.goal else "MISSED"
        goal = f"{row.goal:.3g}"
        lines.append((row.what, row.against, ours, theirs, row.unit, ratio, goal, verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _store(suite: str, rows: list[Row]) -> None:
    RESULTS.mkdir(exist_ok=True)
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "rows": [asdict(row) for row in rows],
    }
    with (RESULTS / f"{suite}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
