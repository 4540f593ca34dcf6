"""Which PySpark there is, and whether pipelines can use it."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from moldau.pipelines.errors import PipelineError

# Sources with limits that get their start offset, and Arrow all the way.
SPARK_MIN: Final = (4, 2)
_WAY_OUT: Final = "pip install 'moldau[spark]'"


class SparkVersionError(PipelineError, ImportError):
    """There is no PySpark, or one that is too old."""


def check_pyspark() -> None:
    """Refuse to go on without a PySpark that is new enough."""
    least = ".".join(map(str, SPARK_MIN))
    version = _version()
    if version is None:
        raise SparkVersionError(f"moldau needs PySpark {least} or newer: {_WAY_OUT}")
    if tuple(int(part) for part in version.split(".")[:2]) < SPARK_MIN:
        raise SparkVersionError(
            f"moldau needs PySpark {least} or newer: this is {version}; {_WAY_OUT}"
        )


def _version() -> str | None:
    # Read, not imported, which takes half a second. A cluster's PySpark has no installed metadata.
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    text = Path(spec.origin).with_name("version.py").read_text()
    match = re.search(r"^__version__\b.*['\"](\d+\.\d+.*)['\"]", text, re.MULTILINE)
    return match[1] if match else None
