"""A program with a Spark session of its own: one process has one, so each runs in another."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 600


def run_program(module: str, *arguments: str, python: str = sys.executable) -> object:
    """Run a module to its end; return what it says as JSON."""
    done = subprocess.run(
        [python, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYSPARK_PYTHON": python, "PYTHONPATH": str(ROOT)},
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
