"""What a setting's value may be, beyond its type: a test, and the words that name it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Allowed:
    """A bound on values; `words` completes "must be ...", and is empty when all are allowed."""

    words: str
    fits: Callable[[Any], bool]
    distinct: bool = False
    """Whether a list is read as a set: what is named twice counts once."""


ANY: Final = Allowed("", lambda _: True)


def at_least(low: float) -> Allowed:
    """Allow numbers from `low`."""
    # "not below", because Kafka lets NaN pass.
    return Allowed(f"at least {low}", lambda value: not value < low)


def between(low: float, high: float) -> Allowed:
    """Allow numbers from `low` to `high`, both included."""
    return Allowed(f"between {low} and {high}", lambda value: not value < low and not value > high)


def one_of(*texts: str) -> Allowed:
    """Allow these texts."""
    return Allowed(f"one of {', '.join(texts)}", lambda value: value in texts)


def one_of_any_case(*texts: str) -> Allowed:
    """Allow these texts in capitals or not."""
    folded = {text.upper() for text in texts}
    return Allowed(f"one of {', '.join(texts)}, in any case", lambda value: value.upper() in folded)


def items(*texts: str, empty: bool = False) -> Allowed:
    """Allow lists of these texts, or of any if none are given; `empty` lists too if asked for."""
    kind = f"a list of {', '.join(texts)}" if texts else "a list of texts"

    def fits(value: tuple[str, ...]) -> bool:
        return (bool(value) or empty) and all(
            item in texts if texts else bool(item) for item in value
        )

    return Allowed(f"{kind}, {'or empty' if empty else 'not empty'}", fits, distinct=True)


def like(pattern: str, words: str) -> Allowed:
    """Allow texts that match `pattern`."""
    text = re.compile(pattern)
    return Allowed(words, lambda value: text.fullmatch(value) is not None)


def items_like(pattern: str, words: str) -> Allowed:
    """Allow lists, also empty ones, whose items match `pattern`."""
    item = re.compile(pattern)
    return Allowed(words, lambda value: all(item.fullmatch(text) for text in value))


NON_EMPTY: Final = Allowed("a text that is not empty", bool)

GZIP_LEVEL: Final = Allowed(
    "between 1 and 9, or -1 for the default", lambda value: value == -1 or 1 <= value <= 9
)

_REPLICAS: Final = items_like(r"[0-9]+:[0-9]+", "")
THROTTLED_REPLICAS: Final = Allowed(
    "*, or a list of partition:broker, or empty",
    lambda value: value == ("*",) or _REPLICAS.fits(value),
)

_HOST_PORT: Final = r"\[?[0-9a-zA-Z\-%._:]*\]?:[0-9]+"
SERVERS: Final = items_like(_HOST_PORT, "a list of host:port, or empty")
VOTERS: Final = items_like(f"-?[0-9]+@{_HOST_PORT}", "a list of id@host:port, or empty")

_DURATION: Final = re.compile(
    r"by_duration:(?=P.)P([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{0,9})?S)?)?",
    re.IGNORECASE,
)
SHARE_OFFSET_RESET: Final = Allowed(
    "latest, earliest, or by_duration: with an ISO 8601 duration such as PT1H30M",
    lambda value: value in {"latest", "earliest"} or _DURATION.fullmatch(value) is not None,
)


def duration_ms(reset: str) -> int:
    """Return how far `by_duration:` goes back, in milliseconds."""
    found = _DURATION.fullmatch(reset)
    assert found is not None, "the setting was checked"
    days, _, hours, minutes, seconds, _ = found.groups()
    whole = [
        int(text[:-1]) * unit_ms
        for text, unit_ms in ((days, 86_400_000), (hours, 3_600_000), (minutes, 60_000))
        if text is not None
    ]
    return sum(whole) + (0 if seconds is None else int(float(seconds[:-1]) * 1000))
