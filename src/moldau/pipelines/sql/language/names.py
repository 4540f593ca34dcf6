"""Names that are not there, and those that may have been meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def close_matches(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean ...?` for names like this one, or nothing."""
    by_folded = {each.casefold(): each for each in known}
    close = [by_folded[each] for each in get_close_matches(name.casefold(), by_folded, n=2)]
    return f": did you mean {' or '.join(close)}?" if close else ""


def no_column(name: str, known: Sequence[str]) -> str:
    """Return what to say of a column, with a relation's name before it or not."""
    close = close_matches(name.rpartition(".")[2], known)
    there = f"; there are {', '.join(known)}" if known else "; there is none"
    return f"there is no column {name}{close or there}"


def no_field(name: str, known: Sequence[str]) -> str:
    """Return what to say of a field."""
    there = f"; there are {', '.join(known)}"
    return f"there is no field {name}{close_matches(name, known) or there}"
