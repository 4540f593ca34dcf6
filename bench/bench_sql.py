"""Questions in SQL beside what people write for them by hand."""

from collections.abc import Callable, Iterator

from bench.row import Row
from bench.sql_questions import RECORDS, questions

PARTS: dict[str, Callable[[int], Iterator[Row]]] = {"questions": questions}


def rows(only: str = "", records: int = RECORDS) -> Iterator[Row]:
    """Measure everything, or one of the parts."""
    if only and only not in PARTS:
        raise SystemExit(f"bench: sql has no {only}; there are {', '.join(PARTS)}")
    for part, measure in PARTS.items():
        if only in ("", part):
            yield from measure(records)
