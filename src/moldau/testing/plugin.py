"""The pytest plugin: `moldau` is a broker for one test, `moldau_session` one for all of them.

`pipeline` runs an app on Spark against a broker of its own; `spark` is the session for that.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.testing.broker import Broker
    from moldau.testing.pipelines import Pipeline

# Imported in every run of pytest: broker and Spark are imported when a fixture is first used.

MARKER = "moldau"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers", f"{MARKER}(settings={{...}}): broker configs for the fixture `moldau`"
    )


@pytest.fixture(scope="session")
def moldau_settings() -> Mapping[str, object]:
    """Broker configs for all brokers of the tests; override it to have some."""
    return {}


@pytest.fixture
def moldau(
    request: pytest.FixtureRequest, moldau_settings: Mapping[str, object]
) -> "Iterator[Broker]":
    """A broker of the test's own, in memory, on a free port."""
    from moldau.testing.broker import Broker  # noqa: PLC0415

    settings = dict(moldau_settings) | _marked(request.node)
    with Broker(settings=settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def moldau_session(moldau_settings: Mapping[str, object]) -> "Iterator[Broker]":
    """One broker for all tests of the session: give each test topics of its own."""
    from moldau.testing.broker import Broker  # noqa: PLC0415

    with Broker(settings=moldau_settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark session for all tests: the one that is there, or a local one."""
    from moldau.pipelines.spark_version import SparkVersionError, check_pyspark  # noqa: PLC0415

    try:
        check_pyspark()
    except SparkVersionError as error:
        pytest.fail(str(error), pytrace=False)
    from moldau.pipelines.session import get_session  # noqa: PLC0415

    # Tests end before a JVM that compiles everything well has gained from that.
    session = get_session(
        "tests", configs={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    )
    yield session
    session.stop()


@pytest.fixture
def pipeline(
    spark: "SparkSession",  # noqa: ARG001 - it is there by then, and ends after all tests
    moldau_settings: Mapping[str, object],
) -> "Callable[..., Pipeline]":
    """Runs an app against a broker of its own: `with pipeline(app) as t:`."""
    from moldau.testing.pipelines import Pipeline  # noqa: PLC0415

    return partial(Pipeline, settings=moldau_settings)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """Return the settings of all markers, those nearest to the test last."""
    settings: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARKER))):
        if mark.args or set(mark.kwargs) != {"settings"}:
            raise pytest.UsageError(f"{item.nodeid}: write @pytest.mark.{MARKER}(settings={{...}})")
        settings |= mark.kwargs["settings"]
    return settings
