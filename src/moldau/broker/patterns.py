"""Regular expressions that clients send: RE2's, which take time linear in what they look at."""

from collections.abc import Callable

from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return whether a whole text matches; `Refusal` if it is not a regular expression."""
    import re2  # noqa: PLC0415 - few requests need it

    options = re2.Options()
    options.log_errors = False
    try:
        fullmatch = re2.compile(pattern, options).fullmatch
    except re2.error:
        raise Refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{pattern}` is not a regular expression."
        ) from None
    return lambda text: fullmatch(text) is not None
