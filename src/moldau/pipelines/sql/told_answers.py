"""What a client is told: a message, a result's columns, each row, its end; progress and notes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from moldau.pipelines.sql.answers import SettingsChanged, StatementAnswer, StatementMessage
from moldau.pipelines.sql.choosing import close
from moldau.pipelines.sql.ports import Result

Telling: TypeAlias = Mapping[str, object]
"""One thing that there is to say; a line of JSON over HTTP."""


def tell_answer(number: int, answer: StatementAnswer) -> Iterator[Sequence[Telling]]:
    """Yield what there is to say, of rows many at once; `number` is the statement's."""
    match answer:
        case StatementMessage(text):
            yield [{"statement": number, "message": text}]
        case SettingsChanged(text, settings):
            yield [{"statement": number, "message": text, "settings": dict(settings)}]
        case Result():
            yield from _tell_result(number, answer)


def tell_progress(done: int, total: int | None) -> Telling:
    """Return what says how many records were read, and of how many."""
    return {"progress": {"done": done, "total": total}}


def tell_note(text: str) -> Telling:
    """Return what says what is being done."""
    return {"note": text}


def _tell_result(number: int, result: Result) -> Iterator[Sequence[Telling]]:
    head: dict[str, object] = {
        "statement": number,
        "columns": [{"name": each.name, "type": each.type} for each in result.columns],
        "engine": result.engine,
    }
    if result.notes:
        head["notes"] = list(result.notes)
    yield [head]
    count = 0
    try:
        for batch in result.batches:
            count += len(batch)
            if batch:
                yield [{"row": list(row)} for row in batch]
    finally:
        close(result.batches)
    yield [{"statement": number, "rows": count}]
