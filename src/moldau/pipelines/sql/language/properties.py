"""`WITH (topic='orders', format='json', ...)`: what a stream or a table is made of."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from moldau.pipelines.decoding.epochs import UNITS
from moldau.pipelines.sql.language.cursor import Cursor, is_count
from moldau.pipelines.sql.language.lexing import Shape, Token
from moldau.pipelines.streams.declared import ON_ERROR, OnError

FORMATS: Final = ("json", "string", "int", "long", "float", "double", "raw")
_WITH_SCHEMA: Final = ("avro", "protobuf")
KEY_FORMATS: Final = ("kafka", "json")
# ksqlDB's names for ours.
_ALIASES: Final = {"kafka_topic": "topic", "value_format": "format", "timestamp": "event_time"}
_KNOWN: Final = (
    "topic", "format", "key_format", "event_time", "event_time_unit", "watermark", "partitions",
    "on_error",
)  # fmt: skip
_SPELLINGS: Final = (*_KNOWN, *_ALIASES)
_UNITS: Final = "microsecond|millisecond|second|minute|hour|day|week"
_DURATION: Final = re.compile(rf"(?:interval\s+)?(?:\s*\d+\s+(?:{_UNITS})s?)+", re.IGNORECASE)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Properties:
    """What was said about a topic; None is what was not said."""

    topic: str | None = None
    format: str | None = None
    """Of the value."""
    key_format: str | None = None
    event_time: str | None = None
    event_time_unit: str | None = None
    """Of an event time that is a number since 1970."""
    watermark: str | None = None
    partitions: int | None = None
    on_error: OnError | None = None
    """What becomes of records that do not decode."""


@dataclass(frozen=True, slots=True)
class Said:
    """The properties, and the tokens of their values, for errors."""

    properties: Properties
    tokens: dict[str, Token]


def take_properties(cursor: Cursor) -> Said:
    """Take `WITH (...)`, if it is there."""
    tokens: dict[str, Token] = {}
    values: dict[str, Any] = {}
    partitions = None
    if not cursor.take("WITH"):
        return Said(Properties(), tokens)
    cursor.expect("(")
    while True:
        name = _take_name(cursor, tokens)
        cursor.expect("=")
        token = cursor.next
        if token is not None:
            tokens[name] = token
        if name == "partitions":
            partitions = _take_count(cursor)
        else:
            values[name] = cursor.string("a string, in quotes")
            assert token is not None
            values[name] = _checked(cursor, name, values[name], token)
        if not cursor.take(","):
            break
    cursor.expect(")")
    for name in ("watermark", "event_time_unit"):
        if name in values and "event_time" not in values:
            message = f"{name} needs event_time: the column whose time it is about"
            raise cursor.error(message, tokens[name])
    return Said(Properties(**values, partitions=partitions), tokens)


def is_topic(name: str) -> bool:
    """Return whether Kafka takes it for the name of a topic."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def _take_name(cursor: Cursor, seen: dict[str, Token]) -> str:
    token = cursor.next
    if token is None or token.shape in (Shape.MARK, Shape.NUMBER):
        cursor.fail("a property, such as topic='orders'")
    spelled = token.value.lower()
    name = _ALIASES.get(spelled, spelled)
    if name not in _KNOWN:
        near = get_close_matches(spelled, _SPELLINGS, 1)
        raise cursor.error(
            f"there is no property {spelled}; there are {', '.join(_KNOWN)}",
            token,
            f"did you mean {near[0]}?" if near else None,
        )
    if name in seen:
        raise cursor.error(f"{name} is said twice", token)
    cursor.advance()
    return name


def _take_count(cursor: Cursor) -> int:
    token = cursor.next
    # ksqlDB takes '3' too.
    if token is not None and token.shape is Shape.STRING:
        number = token._replace(text=token.value)
        if is_count(number):
            cursor.advance()
            return int(number.text)
    return cursor.count("how many partitions, a number above 0")


def _checked(cursor: Cursor, name: str, value: str, token: Token) -> str:
    match name:
        case "format" if value.lower() in _WITH_SCHEMA:
            raise cursor.error(
                f"{value.lower()} has a schema of its own, which SQL cannot name yet",
                token,
                "read it with app.stream, and write JSON for SQL",
            )
        case "format":
            return _one_of(cursor, name, value, token, (*FORMATS, "kafka"))
        case "key_format":
            return _one_of(cursor, name, value, token, KEY_FORMATS)
        case "event_time_unit":
            return _one_of(cursor, name, value, token, UNITS)
        case "on_error":
            return _one_of(cursor, name, value, token, ON_ERROR)
        case "watermark" if not _DURATION.fullmatch(value.strip()):
            raise cursor.error("expected a duration, such as '10 seconds'", token)
        case "topic" if not is_topic(value):
            message = "a topic's name has letters, digits, '.', '_' and '-', at most 249"
            raise cursor.error(message, token)
        case _ if not value:
            raise cursor.error(f"{name} is empty", token)
        case _:
            return value


def _one_of(cursor: Cursor, name: str, value: str, token: Token, known: tuple[str, ...]) -> str:
    if value.lower() not in known:
        raise cursor.error(f"there is no {name} {value}; there are {', '.join(known)}", token)
    return value.lower()
