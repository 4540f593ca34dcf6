"""The one line that matters, out of what Spark says when a query fails.

Spark wraps an error of a Python worker into its trace, that into a Java exception, and that into
a description of the query with its plan. What is wrong, and how to go on, is one line of it.
"""

import re
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Final

from moldau.client.errors import ClientError, ConfigError
from moldau.pipelines.errors import PipelineError, RetriableError

LINE_CHARS_MAX: Final = 500

_PLAN: Final = re.compile(r"\n=== Streaming Query ===.*", re.DOTALL)
_STREAM_FAILED: Final = re.compile(r"^\[STREAM_FAILED\] .*? terminated with exception: ", re.DOTALL)
_SQL_STATE: Final = re.compile(r"\s*SQLSTATE: (\w+)(?:;.*)?", re.DOTALL)
_OURS: Final = re.compile(
    r"^(moldau\.(?:pipelines|client)(?:\.\w+)*)\.(\w+): (.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE
)
_TRACE: Final = "Traceback (most recent call last):"
_PLACE: Final = re.compile(r'^  File "([^"]+)", line (\d+)', re.MULTILINE)
_RAISED: Final = re.compile(r"^[\w.]+(?:: |$)", re.MULTILINE)
_CONDITION: Final = re.compile(r"^\[([A-Z][\w.]+)\] ")
_OTHER_CHECKPOINT: Final = re.compile(
    r"STATE_STORE_(KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STATEFUL_OPERATOR_NOT_MATCH"
    r"|STATE_STORE_.*SCHEMA_EVOLUTION|STREAM_CHECKPOINT|sources in the checkpoint offsets"
)
_BAD_PLAN_STATES: Final = "42"
"""SQL states that begin so: what was asked for makes no sense, today or tomorrow."""
_MISSING_FILE_STATE: Final = "42K03"
"""Except for this one: a file that is not there, which may come."""
_RAISED_STATE: Final = "P0001"
"""Of `raise_error`: a record that is wrong, such as one that does not decode, stays wrong."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query has failed."""

    line: str
    is_final: bool
    """Whether it would fail again for the same reason."""
    text: str
    """Everything that Spark said."""


def failure_of(error: BaseException) -> Failure:
    """Return what is to be told of an error, Spark's or one of this process."""
    if hasattr(error, "getCondition"):
        return read_failure(str(error))
    return read_failure("".join(traceback.format_exception(error)))


def read_failure(text: str) -> Failure:
    """Pick out the line that says what is wrong."""
    said = _STREAM_FAILED.sub("", _PLAN.sub("", text)).strip()
    states = _SQL_STATE.findall(said)
    bare = _SQL_STATE.sub("", said)
    if _OTHER_CHECKPOINT.search(bare):
        line = f"the checkpoint is of another query: {_first_sentence(bare)}"
        return Failure(line, is_final=True, text=text)
    if ours := _find_ours(bare):
        return Failure(_one_line(ours[1]), _is_final(ours[0]), text)
    if _TRACE in bare:
        return Failure(_read_trace(bare), is_final=False, text=text)
    return Failure(_first_sentence(bare), any(map(_is_final_state, states)), text)


def _find_ours(text: str) -> tuple[type[Exception], str] | None:
    """Return the outermost error that is meant to be read: what follows it may be Spark's."""
    for module, name, message in reversed(_OURS.findall(text)):
        try:
            kind = getattr(import_module(module), name, None)
        except ImportError:
            continue  # A text that only looks like an error of ours.
        if isinstance(kind, type) and issubclass(kind, PipelineError | ClientError):
            return kind, message
    return None


def _is_final_state(state: str) -> bool:
    if state == _RAISED_STATE:
        return True
    return state.startswith(_BAD_PLAN_STATES) and state != _MISSING_FILE_STATE


def _is_final(kind: type[Exception]) -> bool:
    if issubclass(kind, PipelineError):
        return not issubclass(kind, RetriableError)
    return issubclass(kind, ConfigError)


def _read_trace(text: str) -> str:
    """Return the last error of Python's trace, and where it was raised."""
    trace = text.rpartition(_TRACE)[2]
    places = _PLACE.findall(trace)
    raised = _RAISED.search(trace)
    line = _one_line(trace[raised.start() :] if raised else trace)
    if not places:
        return line
    path, number = places[-1]
    return f"{line} ({PurePath(path).name}:{number})"


def _first_sentence(text: str) -> str:
    """Return what Spark says first, without the name that it has for it."""
    return _one_line(_CONDITION.sub("", text).partition("\n")[0])


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]} ..."
