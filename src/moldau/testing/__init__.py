"""A real broker in the test's process: `with Broker() as broker:`, or the fixture `moldau`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.testing.broker import Broker, BrokerFailedError

__all__ = ["Broker", "BrokerFailedError"]


def __getattr__(name: str) -> object:
    # pytest imports this package in every run, for the plugin; the broker comes when it is used.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from moldau.testing import broker  # noqa: PLC0415

    return getattr(broker, name)
