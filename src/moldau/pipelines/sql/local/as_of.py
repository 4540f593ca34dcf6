"""AS OF: a relation as it was, by time or by offsets."""

import json

from sqlglot import exp

from moldau.pipelines.sql.language.queries import AsOf, AsOfOffsets, AsOfTime
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.times import UnclearTimeError, read_timestamp


def read_as_of(table: ParsedNode) -> AsOf | None:
    """Return what is written behind a relation's name, None if that is nothing."""
    version = table.take("version")
    if version is None:
        return None
    what = version.take_word("this").upper()
    if version.take_word("kind") != "AS OF" or what not in ("TIMESTAMP", "VERSION"):
        raise GoesToSpark(f"{version.words} behind a relation")
    written = version.get("expression")
    if written.kind is exp.Cast and _is_timestamp(written.get("to")):
        # TIMESTAMP '...', which says again what it is.
        written = written.get("this")
    words = written.take_text()
    if words is None:
        raise QueryError(f"{table.words}: AS OF takes a text in quotes")
    return _time(words) if what == "TIMESTAMP" else _offsets(words)


def _is_timestamp(its_type: ParsedNode) -> bool:
    return its_type.take_word("this") == "TIMESTAMPTZ"


def _time(words: str) -> AsOfTime:
    try:
        found = read_timestamp(words)
    except UnclearTimeError:
        found = None
    if found is None:
        raise QueryError(
            f"TIMESTAMP AS OF {words!r} is no time: write it as '2026-01-31 12:00:00', in UTC, or "
            "with a zone as in '2026-01-31T12:00:00+01:00'"
        )
    return AsOfTime(found)


def _offsets(words: str) -> AsOfOffsets:
    try:
        read = json.loads(words)
        offsets = {int(key): _offset(value) for key, value in dict(read).items()}
    except (ValueError, TypeError):
        raise QueryError(
            f"VERSION AS OF {words!r} is not of offsets: write them by partition, as in "
            '\'{"0": 120, "1": 98}\''
        ) from None
    return AsOfOffsets(tuple(sorted(offsets.items())))


def _offset(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value
