"""The real event loop, which a process runs its node on."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run until `main` is done."""
    return uvloop.run(main)
