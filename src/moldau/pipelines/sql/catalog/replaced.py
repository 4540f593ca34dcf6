"""What may become of a stream or a table in place: further columns behind those that are there."""

from collections.abc import Sequence
from itertools import zip_longest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.relations import Column, Relation


class ReplacedError(PipelineError):
    """What would not be the same stream or table any more."""


def check_relation(before: Relation, now: Relation) -> None:
    """Refuse what those who read or write the topic could not go on with."""
    pairs = {
        "kind": (before.kind.lower(), now.kind.lower()),
        "topic": (before.topic, now.topic),
        "format": (before.format, now.format),
        "event_time": (before.event_time, now.event_time),
        "event_time_unit": (before.event_time_unit, now.event_time_unit),
    }
    for name, (old, new) in pairs.items():
        if old != new:
            raise ReplacedError(f"its {name} was {old or 'none'}, and would be {new or 'none'}")
    if (before.watermark is None) is not (now.watermark is None):
        # Whether windows end, and so what is written of them, is known by that.
        raise ReplacedError(
            f"its watermark was {before.watermark or 'none'}, and would be "
            f"{now.watermark or 'none'}; only its length may change"
        )
    check_columns(before.columns, now.columns)


def check_columns(before: Sequence[Column], now: Sequence[Column]) -> None:
    """Refuse other columns than those that were there, with further ones behind them."""
    for old, new in zip_longest(before, now):
        if old is None:
            if new.is_key:
                raise ReplacedError(f"column {new.name} would be one more of the key")
        elif new is None or new.name != old.name:
            found = "" if new is None else f", where {new.name} is now"
            raise ReplacedError(
                f"column {old.name} would be missing{found}; further columns come behind the last"
            )
        elif new.type != old.type:
            raise ReplacedError(f"column {old.name} was {old.type}, and would be {new.type}")
        elif new.is_key != old.is_key:
            words = "would be of the key no more" if old.is_key else "would be of the key"
            raise ReplacedError(f"column {old.name} {words}")
