"""`python -m bench [NAME[:PART] ...]`: run the benchmarks, print ratios, store them by commit.

`--records`, `--seconds`, `--rounds` and `--warm`, for suites that take them, are for a try, as in
`python -m bench broker:fetch-64k --seconds 2 --rounds 1 --warm 3`: its results are not stored.
`python -m bench chart` draws what is stored, in docs/races.svg.
"""

import argparse
import inspect
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bench.chart import chart
from bench.row import Row
from bench.schedule import Schedule

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
CHART = Path(__file__).parents[1] / "docs/races.svg"


def main() -> int:
    """Run the named suites, or all of them."""
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("suites", nargs="*", metavar="NAME[:PART]", default=SUITES)
    parser.add_argument("--records", type=int)
    parser.add_argument("--seconds", type=float, help="of a round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--warm", type=float, help="seconds of load before the first round")
    given = parser.parse_args()
    if given.suites == ["chart"]:
        CHART.write_text(chart(RESULTS))
        return 0
    named = [suite.partition(":") for suite in given.suites]
    if unknown := sorted({suite for suite, _, _ in named} - set(SUITES)):
        sys.exit(f"bench: no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    tried = _tried(given)
    for suite, _, part in named:
        print(f"{suite}: measuring", flush=True)
        measure: Callable[..., Iterable[Row]] = import_module(f"bench.bench_{suite}").rows
        rows: list[Row] = []
        if unknown := sorted(tried.keys() - inspect.signature(measure).parameters):
            sys.exit(f"bench: {suite} takes no {' or '.join(unknown)}")
        try:
            rows.extend(measure(*filter(None, [part]), **tried))
        finally:
            # What was measured is kept, whatever became of the rest.
            if rows:
                print(_table(rows))
                if not tried:
                    _store(suite, rows)
    return 0


def _tried(given: argparse.Namespace) -> dict[str, object]:
    """Return what a try changes: how many records, or how long."""
    tried: dict[str, object] = {}
    if given.records is not None:
        tried["records"] = given.records
    times = {"warm_seconds": given.warm, "round_seconds": given.seconds, "rounds": given.rounds}
    if changed := {name: value for name, value in times.items() if value is not None}:
        tried["schedule"] = replace(Schedule(), **changed)
    return tried


def _table(rows: list[Row]) -> str:
    lines = [("what", "against", "ours", "theirs", "unit", "ratio", "spread", "goal", "")]
    for row in rows:
        ours, theirs, ratio = (f"{value:.4g}" for value in (row.ours, row.theirs, row.ratio))
        verdict = "" if row.verdict == "stated" else row.verdict
        figures = (ours, theirs, row.unit, ratio, f"{row.spread:.0%}", f"{row.goal:.3g}")
        lines.append((row.what, row.against, *figures, verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    counted = Counter(row.verdict for row in rows)
    return "\n".join([*table, ", ".join(f"{counted[each]} {each}" for each in counted)])


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
