"""Hypothesis tries the same examples every time, and new ones when it is told to explore.

A property has a few dozen of them; MOLDAU_PROPERTY_EXAMPLES says how many, for `make soak`.

How long an example takes says more of the machine than of us, so it fails no test.
"""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.skips", "tests.collected", "tests.worker_groups"]

settings.register_profile(
    "moldau",
    max_examples=int(os.environ.get("MOLDAU_PROPERTY_EXAMPLES", "30")),
    derandomize="MOLDAU_EXPLORE" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("moldau")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has its background jobs ignore it, and so would every command that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have servers of tests be found by tests, and no others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
