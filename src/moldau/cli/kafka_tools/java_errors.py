"""Errors as Java's tools print them: with the name of an exception, and its own words."""

from typing import TYPE_CHECKING, Final

from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.errors import KafkaError

PACKAGE: Final = "org.apache.kafka.common.errors"

_NAMES: Final = {ErrorCode.NON_EMPTY_GROUP: "GroupNotEmpty", ErrorCode.REQUEST_TIMED_OUT: "Timeout"}
"""Where the exception is not called after the error."""

_WORDS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the"
    " consumer group is actively subscribed to it.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found",
    ErrorCode.INVALID_PRODUCER_EPOCH: "Producer attempted to produce with an old epoch.",
}
"""What Java says where the broker does not."""


def java_words(error: "KafkaError") -> str:
    """Return an exception's message."""
    return error.message or _WORDS.get(error.code) or f"{error.code.name}"


def java_name(error: "KafkaError") -> str:
    """Return the name of an error's exception."""
    words = "".join(word.capitalize() for word in error.code.name.split("_"))
    return f"{PACKAGE}.{_NAMES.get(error.code, words)}Exception"


def java_text(error: "KafkaError") -> str:
    """Return an exception as it prints itself."""
    return f"{java_name(error)}: {java_words(error)}"
