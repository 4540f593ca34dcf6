"""How many records of a batch did not decode: Spark counts them, and its progress tells."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal, NamedTuple, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.decoding.batches import REASON


class Counted(NamedTuple):
    """What is counted of a topic: records that are left out, or that are dead letters, too."""

    kind: Literal["skipped", "dead_lettered"]
    topic: str


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
        counted = _read_name(name)
        if counted is not None:
            # Spark Connect has rows as their values, beside the names of these.
            records = row["values"][0] if "values" in row else row[_RECORDS]
            total += DecodeCounts(**{counted.kind: records})
    return total


def read_batch_counts(rows: DataFrame) -> dict[str, int]:
    """Return, by topic, how many records a batch has left out that has just been collected."""
    by_topic: dict[str, int] = {}
    for name, count_of_it in _observed(rows):
        counted = _read_name(name)
        if counted is not None and count_of_it:
            # A topic that is read twice is counted twice.
            by_topic[counted.topic] = max(count_of_it, by_topic.get(counted.topic, 0))
    return by_topic


def _observed(rows: DataFrame) -> Iterator[tuple[str, int]]:
    classic: Any = getattr(rows, "_jdf", None)
    if classic is None:
        info = rows.executionInfo
        for name, pairs in info.flows if info is not None else ():
            if name.startswith(_PREFIX):
                yield name, int(pairs[_RECORDS])
        return
    # An `Observation` would wait for ever for what the optimizer has left out of the plan.
    found = classic.queryExecution().observedMetrics().iterator()
    while found.hasNext():
        pair = found.next()
        name = str(pair.productElement(0))
        if name.startswith(_PREFIX):
            yield name, int(pair.productElement(1).getLong(0))


def _read_name(name: str) -> Counted | None:
    if not name.startswith(_PREFIX):
        return None
    kind, _, topic = name.removeprefix(_PREFIX).split(".", 2)
    return Counted(cast("Any", kind), topic)


def count_undecodable(rows: DataFrame, counted: Counted) -> DataFrame:
    """Return the rows as they are; Spark counts those that have a reason."""
    # A query may read a topic twice, and a name stands for one place in its plan.
    name = f"{_PREFIX}{counted.kind}.{next(_numbers)}.{counted.topic}"
    return rows.observe(name, F.count(REASON.name).alias(_RECORDS))


def leave_out(rows: DataFrame, counted: Counted | None = None) -> DataFrame:
    """Return the rows that have no reason, without that column; the others may be counted."""
    seen = rows if counted is None else count_undecodable(rows, counted)
    return seen.filter(F.col(REASON.name).isNull()).drop(REASON.name)
