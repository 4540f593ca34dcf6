"""Why a record does not decode, in words that are the same for Spark and for the local engine."""

from typing import Final

NOT_UTF8: Final = "it is not UTF-8"
EMPTY: Final = "it is empty"
NOT_JSON: Final = "it is not JSON of the schema"
YEARS: Final = "is not between the years 1 and 9999"
_ADVICE: Final = (
    "a number is read as seconds since 1970: declare milliseconds as BIGINT, with event_time_unit"
)


def wrong_field(path: str, kind: str) -> str:
    """Return that a field is not of its type."""
    return f"{NOT_JSON}: field {path} is no {kind}"


def out_of_years(path: str) -> str:
    """Return that a time is outside of the years 1 to 9999."""
    return f"field {path} {YEARS}; {_ADVICE}"


def epoch_out_of_years(path: str, unit: str) -> str:
    """Return that a number since 1970 is no time: it counts something else than was said."""
    return f"field {path} {YEARS} in {unit}; event_time_unit says what it counts: s, ms, us or ns"
