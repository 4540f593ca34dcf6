"""A real broker in the test's process: `with Broker() as broker:`, or the fixture `moldau`.

And an app on Spark with such a broker: `with Pipeline(app) as t:`, or the fixture `pipeline`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.testing.broker import Broker, BrokerFailedError
    from moldau.testing.pipelines import Pipeline

__all__ = ["Broker", "BrokerFailedError", "Pipeline"]

_MODULES = {
    "Broker": "moldau.testing.broker",
    "BrokerFailedError": "moldau.testing.broker",
    "Pipeline": "moldau.testing.pipelines",
}


def __getattr__(name: str) -> object:
    # pytest imports this package in every run, for the plugin; the broker comes when it is used.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
