"""Data pipelines on Spark: the connector, and streams from topic to topic."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.pipelines.foreach_batch import writer

__all__ = ["writer"]

_MODULES = {"writer": "moldau.pipelines.foreach_batch"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'moldau.pipelines' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
