"""The package builds, installs into a clean environment and works there."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]

CHECK = """
import moldau
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau._native.records import crc32c

assert crc32c(b"123456789") == 0xE3069283
request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
assert ApiVersionsRequest.decode(request.encode(3), 3) == request
print(moldau.__file__, moldau.__version__)

import importlib.util, os, pathlib
from moldau.pipelines import PipelineError, java
assert os.access(pathlib.Path(java.__file__).with_name("jre") / "bin/java", os.X_OK)
assert os.access(pathlib.Path(java.__file__).with_name("worker") / "python", os.X_OK)
assert importlib.util.find_spec("moldau.pipelines.worker.launch")
assert importlib.util.find_spec("pyspark_moldau")
assert (pathlib.Path(java.__file__).with_name("examples") / "shop.sql").exists()
try:
    from moldau.pipelines import get_session
except PipelineError as error:
    assert "pip install 'moldau[spark]'" in str(error)
"""


# That the kernels are fast is not what is tried here: most of the minutes would go there.
COMPILER = """#!/bin/sh
exec {compiler} "$@" -O0
"""


def test_wheel_installs_and_works_in_a_clean_environment(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(COMPILER.format(compiler=shutil.which("cc") or shutil.which("gcc")))
    compiler.chmod(0o755)
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(  # an sdist, and a wheel from that
        build, check=True, capture_output=True, env=os.environ | {"CC": str(compiler)}
    )
    (wheel,) = (tmp_path / "dist").glob("moldau-*.whl")

    venv.create(tmp_path / "clean", with_pip=True)
    python = str(tmp_path / "clean/bin/python")
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
    done = subprocess.run(
        [python, "-c", CHECK], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert str(tmp_path / "clean") in done.stdout

    version = subprocess.run(
        [tmp_path / "clean/bin/moldau", "--version"], check=True, capture_output=True, text=True
    )
    assert version.stdout.split()[0] == "moldau"
