"""One Spark session and one broker for all tests of a process; each test has topics of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.pipelines.session import get_session
from moldau.testing.broker import Broker
from tests.spark.small_session import SMALL
from tools.peers import spark_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.apps import Apps


@pytest.fixture(scope="session", autouse=True)
def _quick_start() -> Iterator[None]:
    """Let every Spark start quickly, those in processes of their own among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", spark_options())
        yield


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    session = get_session("tests", "local[2]", SMALL)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name for a topic that no other test uses."""
    return "".join(c if c.isalnum() else "-" for c in request.node.nodeid)[-200:]


@pytest.fixture
def apps(spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path) -> "Apps":
    """Runs of one app, with a folder of its own."""
    from tests.spark.apps import Apps

    return Apps(broker, topic[-60:], tmp_path)
