"""Times as people write them: a moment, or how long ago."""

import re
import time
from datetime import datetime
from typing import Final

from moldau.cli.frame import CommandError

UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGO = re.compile(r"(\d+)\s*([smhdw])\w*")


def parse_moment(text: str) -> int:
    """Return milliseconds since 1970: of `2h`, `2026-11-16T08:00`, or a number of them."""
    if text.isdecimal():
        return int(text)
    if match := _AGO.fullmatch(text.strip()):
        return time.time_ns() // 1_000_000 - int(match[1]) * UNIT_SECONDS[match[2]] * 1000
    try:
        # Without a zone, it is the one of whoever types.
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise CommandError(
            f"{text!r} is no time: 2h (ago), 2026-11-16T08:00 and 1794816000000 would be"
        ) from None
