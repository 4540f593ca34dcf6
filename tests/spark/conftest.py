"""One Spark session and one broker for all tests of a process; each test has topics of its own."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from moldau.pipelines.session import get_session
from moldau.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    session = get_session("tests", "local[2]")
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
