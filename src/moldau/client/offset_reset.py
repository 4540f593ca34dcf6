"""`auto.offset.reset`: where to begin in a partition without a position, or with a bad one."""

import re
from dataclasses import dataclass
from typing import Final

from moldau.client.errors import ConfigError, NoOffsetError
from moldau.client.offset_lookup import EARLIEST, LATEST

_DURATION: Final = re.compile(
    r"by_duration:(?=P.)P(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?"
    r"(?:(?P<seconds>[0-9]+(?:\.[0-9]{0,9})?)S)?)?"
)
_UNITS_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """A place that is looked up when it is needed."""

    timestamp: int | None
    """A place's or a time's number; None for none, or for a time that is counted back."""
    back_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> "OffsetReset":
        """Read `earliest`, `latest`, `none` or `by_duration:` with an ISO 8601 duration."""
        named = {"earliest": cls(EARLIEST), "latest": cls(LATEST), "none": cls(None)}
        if text in named:
            return named[text]
        match = _DURATION.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"auto.offset.reset={text}: earliest, latest, none, or by_duration: with an ISO"
                " 8601 duration such as by_duration:P1D is allowed"
            )
        found = {unit: float(count) for unit, count in match.groupdict().items() if count}
        return cls(None, int(sum(count * _UNITS_MS[unit] for unit, count in found.items())))

    @property
    def is_none(self) -> bool:
        """Whether nothing is to be looked up."""
        return self.timestamp is None and self.back_ms is None

    def timestamp_at(self, wall_ms: int, what: object) -> int:
        """Return what to look up at this time; `NoOffsetError` if nothing is to be."""
        if self.back_ms is not None:
            return max(0, wall_ms - self.back_ms)
        if self.timestamp is None:
            raise NoOffsetError(
                f"{what} has no position, and auto.offset.reset is none: seek to one"
            )
        return self.timestamp
