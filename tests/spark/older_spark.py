"""The oldest PySpark that the connector works with, beside everything that is installed here."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from moldau.pipelines.spark_version import SPARK_MIN

OLDER = ".".join(map(str, SPARK_MIN))
FOLDER = Path(__file__).parents[2] / ".cache" / f"pyspark-{OLDER}"


def older_python() -> str:
    """Return a Python with that PySpark, installed where the cache lacks it: 0.5 GB."""
    python = FOLDER / "bin" / "python"
    stamp = FOLDER / "complete"
    if not stamp.exists():
        venv.create(FOLDER, clear=True, with_pip=True)
        install = (str(python), "-m", "pip", "install", "-q", f"pyspark=={OLDER}.*")
        subprocess.run(install, check=True)
        # Whatever else is needed comes from here, behind what is there.
        here = sysconfig.get_path("purelib")
        there = next((FOLDER / "lib").glob("python*/site-packages"))
        (there / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
        stamp.write_text(sys.version)
    return str(python)
