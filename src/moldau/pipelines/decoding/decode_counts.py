"""How many records of a batch did not decode: Spark counts them, and its progress tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.decoding.batches import REASON

Counted = Literal["skipped", "dead_lettered"]
"""What becomes of a record that does not decode: it is left out, or it is a dead letter, too."""

_PREFIX: Final = "moldau.undecodable."
_RECORDS: Final = "records"
_numbers = count()


@dataclass(frozen=True, slots=True)
class DecodeCounts:
    """How many records of a query did not decode, by what has become of them."""

    skipped: int = 0
    dead_lettered: int = 0
    """Also of a query that leaves them out while the app's query of dead letters writes them."""

    def __add__(self, other: "DecodeCounts") -> "DecodeCounts":
        return DecodeCounts(self.skipped + other.skipped, self.dead_lettered + other.dead_lettered)


def read_decode_counts(progress: Mapping[str, Any]) -> DecodeCounts:
    """Return what Spark's progress of one batch, as it is in JSON, tells of records left out."""
    total = DecodeCounts()
    for name, row in (progress.get("observedMetrics") or {}).items():
        if name.startswith(_PREFIX):
            kind = name.removeprefix(_PREFIX).partition(".")[0]
            total += DecodeCounts(**{kind: row[_RECORDS]})
    return total


def count_undecodable(rows: DataFrame, counted: Counted) -> DataFrame:
    """Return the rows as they are, of a stream; Spark counts those that have a reason."""
    # A query may read a topic twice, and a name stands for one place in its plan.
    name = f"{_PREFIX}{counted}.{next(_numbers)}"
    return rows.observe(name, F.count(REASON.name).alias(_RECORDS))


def leave_out(rows: DataFrame, counted: Counted | None = None) -> DataFrame:
    """Return the rows that have no reason, without that column; the others may be counted."""
    seen = rows if counted is None else count_undecodable(rows, counted)
    return seen.filter(F.col(REASON.name).isNull()).drop(REASON.name)
