"""Sums of doubles from which values can be taken back: kept exactly, and rounded once."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isinf, isnan, nan


@dataclass(frozen=True, slots=True)
class ExactSum:
    """A sum as a whole number of 2**-scale, beside what no number is."""

    units: int = 0
    scale: int = 0
    """Never below zero."""
    nan_count: int = 0
    inf_count: int = 0
    minus_inf_count: int = 0

    def add(self, values: Iterable[float], sign: int = 1) -> "ExactSum":
        """Return the sum with these values, or without them if the sign is -1."""
        units, scale = self.units, self.scale
        nans, infs, minus_infs = self.nan_count, self.inf_count, self.minus_inf_count
        for value in values:
            if isnan(value):
                nans += sign
            elif isinf(value):
                infs += sign * (value > 0)
                minus_infs += sign * (value < 0)
            else:
                # The denominator of a double is a power of two.
                numerator, denominator = value.as_integer_ratio()
                needed = denominator.bit_length() - 1
                if needed > scale:
                    units <<= needed - scale
                    scale = needed
                units += sign * numerator << (scale - needed)
        assert min(nans, infs, minus_infs) >= 0, "a value is taken back that was not added"
        # Trailing zeros are of no use, and would stay in the state.
        zeros = min(scale, (units & -units).bit_length() - 1) if units else scale
        return ExactSum(units >> zeros, scale - zeros, nans, infs, minus_infs)

    @property
    def rounded(self) -> float:
        """The double that is nearest to it."""
        if self.nan_count or (self.inf_count and self.minus_inf_count):
            return nan
        if self.inf_count or self.minus_inf_count:
            return inf if self.inf_count else -inf
        try:
            return self.units / (1 << self.scale)
        except OverflowError:
            return inf if self.units > 0 else -inf
