"""Values as JSON can have them."""

import base64
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal


def plain(value: object) -> object:  # noqa: PLR0911 - one for each type
    """Return a value as JSON can have it: times in UTC, decimals and bytes as texts."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(plain(key)): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return str(value)


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
