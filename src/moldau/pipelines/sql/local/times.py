"""Texts as times, by the rules of Spark's casts: what is no time there is none here."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

PLAIN_TIME: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
"""The times that every engine reads alike; RE2 and Python read the pattern alike, too."""
PLAIN_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = re.compile(
    r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
    r"([T ]((?P<hour>\d{1,2}):(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<part>\d*))?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{1,2}(:\d{1,2})?)?)?)?)?)?",
    re.ASCII,
)


_FAR: Final = re.compile(r"(-\d+|\+?\d{5,6})(-\d{1,2}(-\d{1,2}([T ].*)?)?)?", re.ASCII)


class UnclearTimeError(ValueError):
    """What may be a time in Spark, such as one with the name of a zone."""


class FarTimeError(UnclearTimeError):
    """What is a time in Spark's casts, but none of the years 1 to 9999, or none at all."""


def read_timestamp(words: str) -> datetime | None:
    """Return a time in UTC, None if it is none; `UnclearTimeError` if only Spark knows."""
    found = _TIME.fullmatch(words.strip())
    if found is None:
        _check_near(words)
        if re.match(r"\s*[+-]?\d{4,}", words, re.ASCII) or "T" in words or ":" in words:
            raise UnclearTimeError(words)
        return None
    numbers = {name: found[name] for name in ("hour", "minute", "second", "month", "day")}
    try:
        local = datetime(
            int(found["year"]),
            int(numbers["month"] or 1),
            int(numbers["day"] or 1),
            int(numbers["hour"] or 0),
            int(numbers["minute"] or 0),
            int(numbers["second"] or 0),
            # Spark drops what is smaller than a microsecond.
            int((found["part"] or "")[:6].ljust(6, "0")),
            tzinfo=_zone(found["zone"]),
        )
        return local.astimezone(UTC)
    except ValueError:
        return None
    except OverflowError:
        raise FarTimeError(words) from None


def read_date(words: str) -> date | None:
    """Return a date, None if it is none; `UnclearTimeError` if only Spark knows."""
    found = re.fullmatch(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", words.strip(), re.ASCII)
    if found is None:
        _check_near(words)
        if re.match(r"\s*[+-]?\d{4,}", words, re.ASCII):
            raise UnclearTimeError(words)
        return None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return None


def _check_near(words: str) -> None:
    if _FAR.fullmatch(words.strip()):
        raise FarTimeError(words)


def _zone(words: str | None) -> timezone:
    if words in (None, "Z", "UTC", "GMT"):
        return UTC
    assert words is not None, "matched above"
    hours, _, minutes = words[1:].partition(":")
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if ahead > timedelta(hours=18):
        raise ValueError(f"{words} is no zone")
    return timezone(-ahead if words.startswith("-") else ahead)
