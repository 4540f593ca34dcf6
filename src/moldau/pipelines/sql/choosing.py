"""Which engine answers: the first that does not decline."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.ports import DeclinedError, Engine, Result, ResultRow
from moldau.pipelines.sql.session import ENGINE, Session

AUTO: Final = "auto"


class NobodyAnswersError(PipelineError):
    """No engine takes a question; the text has the reason of each."""


def select(
    engines: Sequence[Engine],
    question: Select,
    snapshot: CatalogSnapshot,
    session: Session,
    asker: Asker,
) -> Result:
    """Have the first engine answer that takes the question."""
    reasons = []
    for engine in _wanted(engines, session):
        asker.check()  # it may have gone while another engine has tried
        try:
            result = engine.select(question, snapshot, session, asker)
            if question.emit is not None:
                return result  # its first row may be long in coming
            # What an engine cannot do may show only when it has begun.
            first = next(result.batches, None)
        except DeclinedError as error:
            reasons.append(f"{engine.name}: {error}")
            continue
        batches = result.batches if first is None else _resumed(first, result.batches)
        return Result(result.columns, batches, result.engine, result.notes)
    raise NobodyAnswersError(_nobody(reasons))


def explain(
    engines: Sequence[Engine],
    question: Select,
    snapshot: CatalogSnapshot,
    session: Session,
    asker: Asker,
) -> Iterator[str]:
    """Yield lines that say who would answer, who would not, and how."""
    reasons = []
    for engine in _wanted(engines, session):
        try:
            text = engine.explain(question, snapshot, session, asker)
        except DeclinedError as error:
            reasons.append(f"{engine.name}: {error}")
            continue
        yield f"Engine: {engine.name}"
        yield from (f"Not {each}" for each in reasons)
        yield from text.splitlines()
        return
    raise NobodyAnswersError(_nobody(reasons))


def _wanted(engines: Sequence[Engine], session: Session) -> list[Engine]:
    wanted = session.get(ENGINE)
    return [each for each in engines if wanted in (AUTO, each.name)]


def _nobody(reasons: Sequence[str]) -> str:
    return f"nobody can answer this; {'; '.join(reasons) or 'there is no such engine here'}"


def _resumed(
    first: Sequence[ResultRow], rest: Iterator[Sequence[ResultRow]]
) -> Iterator[Sequence[ResultRow]]:
    try:
        yield from chain([first], rest)
    finally:
        close(rest)


def close(batches: Iterator[Sequence[ResultRow]]) -> None:
    """Have whoever makes the rows know that no more are wanted."""
    if (closing := getattr(batches, "close", None)) is not None:
        closing()
