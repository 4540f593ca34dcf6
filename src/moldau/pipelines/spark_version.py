"""Which PySpark there is, and whether pipelines can use it."""

from importlib import import_module
from typing import Final

from moldau.pipelines.errors import PipelineError

# From here on a source with a limit gets the offset that it starts from.
SPARK_MIN: Final = (4, 2)
_WAY_OUT: Final = "pip install 'moldau[spark]'"
# What pyspark.sql.connect imports, beside what moldau[spark] has.
_CONNECT: Final = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
}


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


def check_connect(master: str) -> None:
    """Refuse a server of Spark Connect without what PySpark needs for one."""
    missing = [package for name, package in _CONNECT.items() if not _is_there(name)]
    if missing:
        raise SparkVersionError(
            f"master={master}: Spark Connect needs {', '.join(missing)}: "
            "pip install 'moldau[connect]'"
        )


def _is_there(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
