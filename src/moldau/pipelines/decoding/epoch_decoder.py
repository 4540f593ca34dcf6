"""Decodes numbers since 1970 to times, whole columns at once."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from moldau.pipelines.decoding.decoder import Decoded, Decoder, SchemaError
from moldau.pipelines.decoding.epochs import PER_SECOND, bounds
from moldau.pipelines.decoding.reasons import epoch_out_of_years

TIMESTAMP: Final = pa.timestamp("us", "UTC")
_PER_US: Final = PER_SECOND["ns"] // PER_SECOND["us"]


@dataclass(frozen=True, slots=True)
class EpochDecoder:
    """Decodes as another decoder does, and makes a time of a number: a field, or the value."""

    inner: Decoder
    unit: str
    field: str | None = None

    @property
    def arrow_type(self) -> pa.DataType:
        """The values' type."""
        if self.field is None:
            return TIMESTAMP
        fields = [self.inner.arrow_type.field(at) for at in range(self.inner.arrow_type.num_fields)]
        at = self._place()
        fields[at] = pa.field(self.field, TIMESTAMP)
        return pa.struct(fields)

    def decode(self, column: pa.Array) -> Decoded:
        """Return values with times; a number that is none does not decode."""
        values, reasons = self.inner.decode(column)
        parts = [values] if self.field is None else values.flatten()
        place = 0 if self.field is None else self._place()
        first, last = bounds(self.unit)
        numbers = parts[place]
        is_time = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
        bad = pc.indices_nonzero(pc.invert(is_time).fill_null(False)).to_pylist()  # noqa: FBT003
        why = epoch_out_of_years(self.field or "value", self.unit)
        reasons = {**dict.fromkeys(bad, why), **reasons}
        times = _as_times(pc.if_else(is_time, numbers, None), self.unit)
        if self.field is None:
            return Decoded(times, reasons)
        parts[place] = times
        fields = list(self.arrow_type)
        return Decoded(
            pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null()), reasons
        )

    def _place(self) -> int:
        place: int = self.inner.arrow_type.get_field_index(self.field)
        return place


def check_epoch(decoder: Decoder, field: str | None) -> None:
    """Refuse a field that is no BIGINT."""
    kind = decoder.arrow_type
    if field is not None:
        place = kind.get_field_index(field) if pa.types.is_struct(kind) else -1
        if place < 0:
            raise SchemaError(f"there is no field {field}")
        kind = kind.field(place).type
    if kind != pa.int64():
        raise SchemaError(f"{field or 'the value'} is {kind}, and a number of 64 bits is wanted")


def _as_times(numbers: pa.Array, unit: str) -> pa.Array:
    if unit == "ns":
        # Towards the past, as every other engine: Arrow cuts off towards 1970.
        cut = pc.divide(numbers, _PER_US)
        is_late = pc.greater(pc.multiply(cut, _PER_US), numbers)
        return pc.subtract(cut, is_late.cast(pa.int64())).cast(TIMESTAMP)
    factor = PER_SECOND["us"] // PER_SECOND[unit]
    return pc.multiply(numbers, factor).cast(TIMESTAMP)
