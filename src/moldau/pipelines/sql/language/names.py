"""Names that somebody may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def close_matches(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean ...?` for names like this one, or nothing."""
    by_folded = {each.casefold(): each for each in known}
    close = [by_folded[each] for each in get_close_matches(name.casefold(), by_folded, n=2)]
    return f": did you mean {' or '.join(close)}?" if close else ""
