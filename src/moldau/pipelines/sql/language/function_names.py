"""Functions that there are not: what there is instead, or what may have been meant.

Spark knows best which functions it has, and is asked about any other name. Those that are ksqlDB's,
or look like a slip of the pen, are named before it has started.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NamedTuple

from sqlglot import exp

from moldau.pipelines.sql.language.ksqldb_functions import COUNTERPARTS
from moldau.pipelines.sql.language.spark_functions import SPARK_FUNCTIONS, SYNTAX

_CALL: Final = re.compile(r"\w+(?=\s*\()", re.ASCII)
_LIKENESS_MIN: Final = 0.75
"""Above it, a name is another one that is misspelt."""


class UnknownFunction(NamedTuple):
    """A function that is not there, where it is called, and what to write."""

    start: int
    end: int
    words: str
    hint: str | None = None


def find_unknown(text: str, query: exp.Query) -> UnknownFunction | None:
    """Return the first function of a query that is not there, if it is known what to say of it."""
    return min(filter(None, map(_unknown, _calls(text, query))), default=None)


def no_function(name: str) -> str:
    """Return what to say of a function that is not there."""
    counterpart = COUNTERPARTS.get(name.upper())
    if counterpart is not None:
        return f"there is no function {name}; instead of ksqlDB's there is {counterpart}"
    close = _close(name)
    return f"there is no function {name}{f': did you mean {close}?' if close else ''}"


def _calls(text: str, query: exp.Query) -> Iterator[tuple[int, str]]:
    for node in query.find_all(exp.Func):
        found = _CALL.match(text, node.meta["start"]) if "start" in node.meta else None
        if found is not None:
            yield found.start(), found.group()


def _unknown(call: tuple[int, str]) -> UnknownFunction | None:
    start, name = call
    end = start + len(name)
    if name.lower() in SPARK_FUNCTIONS or name.lower() in SYNTAX:
        return None
    if name.upper() in COUNTERPARTS:
        return UnknownFunction(start, end, no_function(name))
    close = _close(name)
    if not close or _has_pyspark(name.lower()):
        return None
    return UnknownFunction(start, end, f"there is no function {name}", f"did you mean {close}?")


def _close(name: str) -> str:
    return " or ".join(get_close_matches(name.lower(), SPARK_FUNCTIONS, 2, _LIKENESS_MIN))


def _has_pyspark(name: str) -> bool:
    """Whether a Spark that is newer than the list has it."""
    if find_spec("pyspark") is None:
        return False
    return hasattr(import_module("pyspark.sql.functions"), name)
