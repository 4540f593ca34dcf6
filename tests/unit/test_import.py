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


def test_importing_moldau_imports_neither_asyncio_nor_a_client() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


@pytest.mark.parametrize("name", moldau.__all__)
def test_what_is_promised_is_there(name: str) -> None:
    found = getattr(moldau, name)
    assert getattr(moldau, name) is found


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'moldau' has no attribute 'Konsumer'"):
        moldau.Konsumer  # noqa: B018
