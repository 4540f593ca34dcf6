"""Regular expressions for topics, which take time linear in the names of these."""

from collections.abc import Iterable
from typing import Any

from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode


def check_regex(regex: str) -> None:
    """Refuse what is not a regular expression of RE2: others may take forever."""
    from re2 import error  # noqa: PLC0415 - few groups need it

    try:
        _compile(regex)
    except error as reason:
        words = reason.args[0]
        words = words.decode(errors="replace") if isinstance(words, bytes) else words
        raise Refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {words}.",
        ) from None


def find_topics(regex: str, topics: Iterable[str]) -> frozenset[str]:
    """Return those of the names that an expression stands for."""
    from re2 import error  # noqa: PLC0415 - few groups need it

    try:
        fullmatch = _compile(regex).fullmatch
    except error:
        # It was good for the coordinator that took it: another release, or another make.
        return frozenset()
    return frozenset(name for name in topics if fullmatch(name))


def _compile(regex: str) -> Any:
    """Return the expression, compiled; how much memory it takes is bounded by the library."""
    from re2 import Options, compile  # noqa: A004, PLC0415 - few groups need it

    options = Options()
    options.log_errors = False
    return compile(regex, options)
