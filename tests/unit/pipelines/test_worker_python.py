"""The Python of Spark's workers finds what is installed, and not Spark's zip."""

import os
import subprocess
import sys
from pathlib import Path

import moldau.pipelines

PYTHON = Path(moldau.pipelines.__file__).parent / "worker/python"


def run(*arguments: str, path: str) -> str:
    env = os.environ | {"MOLDAU_PYTHON": sys.executable, "PYTHONPATH": path}
    done = subprocess.run([PYTHON, *arguments], env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_zips_are_left_out_and_the_rest_keeps_its_order() -> None:
    show = "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:])"
    lib = "/spark dir/python/lib"
    path = f"{lib}/pyspark.zip:{lib}/py4j-0.10.9.9-src.zip:/b b:/a"
    assert run("-c", show, "x y", path=path) == "/b b:/a ['x y']\n"
    assert run("-c", show, path="") == " []\n"


def test_the_worker_that_talks_to_itself_is_not_heard() -> None:
    show = "print('Starting')"
    assert run("-c", show, "pyspark.worker", path="") == "Starting\n"
    name = "pyspark.sql.streaming.transform_with_state_driver_worker"
    assert run("-c", show, name, path="") == ""
