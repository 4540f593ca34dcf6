"""Which PySpark there is, and whether pipelines can use it."""

from typing import Final

from moldau.pipelines.errors import PipelineError

# From here on a source with a limit gets the offset that it starts from.
SPARK_MIN: Final = (4, 2)
_WAY_OUT: Final = "pip install 'moldau[spark]'"


class SparkVersionError(PipelineError, ImportError):
    """There is no PySpark, or one that is too old."""


def check_pyspark() -> None:
    """Refuse to go on without a PySpark that is new enough."""
    least = ".".join(map(str, SPARK_MIN))
    try:
        from pyspark import __version__ as version  # noqa: PLC0415
    except ImportError:
        raise SparkVersionError(f"moldau needs PySpark {least} or newer: {_WAY_OUT}") from None
    if tuple(int(part) for part in version.split(".")[:2]) < SPARK_MIN:
        raise SparkVersionError(
            f"moldau needs PySpark {least} or newer: this is {version}; {_WAY_OUT}"
        )
