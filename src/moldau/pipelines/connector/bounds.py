"""Where a read begins and ends, as its options say it."""

from dataclasses import dataclass

from moldau.pipelines.connector.offsets import EARLIEST, LATEST, Offsets, parse_numbers
from moldau.pipelines.connector.options import Options
from moldau.pipelines.errors import OptionError


@dataclass(frozen=True, slots=True)
class AtEdge:
    """At the first or the next offset of every partition: EARLIEST or LATEST."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """At an offset of each partition, which may be EARLIEST or LATEST."""

    option: str
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTimes:
    """At the first record that is as late: one time for all partitions, or one for each."""

    option: str
    timestamps_ms: int | Offsets
    is_latest_allowed: bool
    """Whether a partition without such a record is taken at its end."""


Bound = AtEdge | AtOffsets | AtTimes


def read_start(options: Options) -> Bound | None:
    """Read where to begin, None if no option says it."""
    strategy = options.choice("startingOffsetsByTimestampStrategy", ["error", "latest"], "error")
    return _read(
        options,
        ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
        is_latest_allowed=strategy == "latest",
    )


def read_end(options: Options) -> Bound | None:
    """Read where to end, None if no option says it."""
    names = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    return _read(options, names, is_latest_allowed=True)


def _read(
    options: Options, names: tuple[str, str, str], *, is_latest_allowed: bool
) -> Bound | None:
    """Read the first of these options that is given; Spark's connector has the same order."""
    time, times, offsets = names
    given = {name: (options.text(name) or "").strip() for name in names if name in options}
    if time in given:
        return AtTimes(time, options.number(time, least=0) or 0, is_latest_allowed)
    if times in given:
        return AtTimes(times, parse_numbers(times, given[times], least=0), is_latest_allowed)
    if offsets not in given:
        return None
    edge = {"earliest": EARLIEST, "latest": LATEST}.get(given[offsets].lower())
    if edge is not None:
        return AtEdge(edge)
    if not given[offsets].startswith("{"):
        raise OptionError(
            f"option {offsets}={given[offsets]}: earliest, latest or JSON such as "
            '{"topic":{"0":23,"1":-2}} is allowed'
        )
    return AtOffsets(offsets, parse_numbers(offsets, given[offsets], least=EARLIEST))


def refuse_edge(bound: Bound, edge: int, words: str) -> None:
    """Refuse a bound that is at this edge of some partition."""
    is_there = isinstance(bound, AtEdge) and bound.offset == edge
    if is_there or (isinstance(bound, AtOffsets) and edge in bound.offsets.values()):
        raise OptionError(words)
