"""A run is the same in any process: neither hashes nor addresses matter."""

import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.test_whole_node import produce_and_consume

SEED = 3
ROOT = Path(__file__).parents[2]
SCRIPT = f"""\
from random import SystemRandom
chance = SystemRandom()
junk = [bytearray(chance.randrange(5000)) for _ in range(chance.randrange(10_000))]
del junk[::2]
from tests.simulation.test_whole_node import produce_and_consume
print(produce_and_consume({SEED}).digest)
"""


def start(**environment: str) -> subprocess.Popen[str]:
    """Have a process of its own run it, after random allocations."""
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHONPATH": paths} | environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_neither_hashes_nor_addresses_matter():
    with (
        start(PYTHONHASHSEED="1") as first,
        start(PYTHONHASHSEED="2", PYTHONMALLOC="malloc") as second,
    ):
        digest = produce_and_consume(SEED).digest
        assert [first.communicate()[0], second.communicate()[0]] == [f"{digest}\n"] * 2
