"""Which partitions are read: those of some topics, of topics that a pattern fits, or these."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.offsets import parse_partitions
from moldau.pipelines.connector.options import Options
from moldau.pipelines.errors import OptionError


@dataclass(frozen=True, slots=True)
class Subscribed:
    """All partitions of these topics, new ones too."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """All partitions of the topics whose whole name a pattern fits, new ones too."""

    pattern: re.Pattern[str]

    def choose(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that fit."""
        return tuple(name for name in sorted(names) if self.pattern.fullmatch(name))


@dataclass(frozen=True, slots=True)
class Assigned:
    """Exactly these partitions."""

    partitions: tuple[TopicPartition, ...]


TopicChoice = Subscribed | Matched | Assigned


def read_topics(options: Options) -> TopicChoice:
    """Read `subscribe`, `subscribePattern` or `assign`, of which there must be one."""
    names = ("subscribe", "subscribePattern", "assign")
    given = [name for name in names if name in options]
    if not given:
        raise OptionError(
            'no topic is named: add .option("subscribe", ...), or subscribePattern, or assign'
        )
    if len(given) > 1:
        raise OptionError(f"options {' and '.join(given)} exclude each other: keep one of them")
    name, text = given[0], options.require(given[0])
    match name:
        case "subscribe":
            topics = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
            if not topics:
                raise OptionError(f"option subscribe={text}: names of topics are wanted")
            return Subscribed(topics)
        case "subscribePattern":
            try:
                return Matched(re.compile(text.strip()))
            except re.error as error:
                raise OptionError(f"option subscribePattern={text}: {error}") from None
        case _:
            return Assigned(tuple(parse_partitions("assign", text)))
