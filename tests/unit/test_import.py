"""`import moldau` is light, and has the clients at hand."""

import subprocess
import sys

import pytest

import moldau

LIGHT = """
import sys, moldau
heavy = {"asyncio", "socket", "logging", "uvloop", "moldau.client"} & set(sys.modules)
assert not heavy, heavy
assert "Consumer" in dir(moldau)
"""

WITHOUT_SPARK = """
import sys
for name in ("pyspark", "pyarrow", "pandas", "numpy", "anyio", "starlette", "uvicorn"):
    sys.modules[name] = None
import moldau, moldau.cli, moldau.testing.plugin
from moldau.testing.broker import Broker
with Broker() as broker, moldau.Producer(broker.bootstrap_servers) as producer:
    producer.send("clicks", b"hello").result()
import moldau.pipelines
"""


def test_importing_moldau_imports_neither_asyncio_nor_a_client() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


def test_a_broker_and_a_client_run_where_spark_is_not_installed() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_SPARK], check=True)


@pytest.mark.parametrize("name", moldau.__all__)
def test_what_is_promised_is_there(name: str) -> None:
    found = getattr(moldau, name)
    assert getattr(moldau, name) is found


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'moldau' has no attribute 'Konsumer'"):
        moldau.Konsumer  # noqa: B018
