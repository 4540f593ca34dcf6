"""Data pipelines on Spark: the connector, and streams from topic to topic."""

from importlib import import_module
from typing import TYPE_CHECKING

from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.spark_version import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import functions

    from moldau.pipelines.foreach_batch import writer
    from moldau.pipelines.session import get_session
    from moldau.pipelines.streams.app import App

__all__ = ["App", "functions", "get_session", "writer", "OptionError", "PipelineError"]

_MODULES = {
    "App": "moldau.pipelines.streams.app",
    "functions": "pyspark.sql",
    "get_session": "moldau.pipelines.session",
    "writer": "moldau.pipelines.foreach_batch",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_pyspark()
    return getattr(import_module(_MODULES[name]), name)
