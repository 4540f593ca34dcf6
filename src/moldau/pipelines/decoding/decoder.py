"""What all decoders do: a column of bytes becomes a column of values, and bad rows get a reason."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from moldau.pipelines.errors import PipelineError

REASON_CHARACTERS_MAX: Final = 300

Row = TypeVar("Row")


class SchemaError(PipelineError, ValueError):
    """A schema that cannot be read, or that says what Spark has no type for."""


def no_counterpart(where: str, what: str) -> SchemaError:
    """Return the error for a type that Spark does not have."""
    field = f"field {where}" if where else "the schema"
    return SchemaError(f"{field}: {what} has no counterpart in Spark; read the value as raw")


def inside(where: str, field: str) -> str:
    """Return a field's name from the value's beginning on."""
    return f"{where}.{field}" if where else field


class Decoded(NamedTuple):
    """A column's values: null where the bytes are, and where they do not decode, by `reasons`."""

    values: pa.Array
    reasons: dict[int, str]


class Decoder(Protocol):
    """Turns bytes into values of one type. It can be pickled, as tasks get it from the driver."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The values' type, exactly as Spark's Arrow schema has it."""

    def decode(self, column: pa.Array) -> Decoded:
        """Return the values of a column of binary."""


def decode_rows(
    column: pa.Array, read: Callable[[bytes], Row], build: Callable[[Sequence[Row]], pa.Array]
) -> Decoded:
    """Read each row by itself, then build one array of all.

    Some values are read well and still do not fit, such as times after the year 294247. Building
    fails as a whole then, and only then rows are tried one by one.
    """
    rows: list[Row] = []
    places: list[int] = []
    reasons: dict[int, str] = {}
    for place, data in enumerate(column.to_pylist()):
        if data is None:
            continue
        # Bytes from elsewhere can make a codec raise whatever there is.
        try:
            row = read(data)
        except Exception as error:  # noqa: BLE001
            reasons[place] = in_one_line(error)
        else:
            rows.append(row)
            places.append(place)
    try:
        values = build(rows)
    except Exception:  # noqa: BLE001
        unfit = {places[at]: why for at, why in _unfit_rows(rows, build)}
        reasons.update(unfit)
        rows = [row for row, place in zip(rows, places, strict=True) if place not in unfit]
        places = [place for place in places if place not in unfit]
        values = build(rows)
    return Decoded(spread(values, places, len(column)), reasons)


def _unfit_rows(
    rows: Sequence[Row], build: Callable[[Sequence[Row]], pa.Array]
) -> list[tuple[int, str]]:
    found = []
    for at, row in enumerate(rows):
        try:
            build([row])
        except Exception as error:  # noqa: BLE001
            found.append((at, in_one_line(error)))
    return found


def spread(values: pa.Array, places: Sequence[int], length: int) -> pa.Array:
    """Return an array of `length` with the values at their places, and nulls elsewhere."""
    if len(places) == length:
        return values
    origins: list[Any] = [None] * length
    for origin, place in enumerate(places):
        origins[place] = origin
    return values.take(pa.array(origins, pa.int64()))


def in_one_line(error: Exception) -> str:
    """Return an error's words, short enough for a header of a record."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= REASON_CHARACTERS_MAX else words[:REASON_CHARACTERS_MAX] + "..."
