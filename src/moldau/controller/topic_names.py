"""What a topic may be called."""

import re
from typing import Final

from moldau.coordination.refusal import Refusal
from moldau.metadata.topics import Topics
from moldau.protocol.errors import ErrorCode

METADATA_TOPIC: Final = "__cluster_metadata"
NAME_LENGTH_MAX: Final = 249

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic can have."""
    reason = None
    if not name:
        reason = "it is empty"
    elif name in (".", ".."):
        reason = f"{name!r} is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"it has {len(name)} characters, and {NAME_LENGTH_MAX} are allowed"
    elif not _NAME.fullmatch(name):
        reason = f"{name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    if reason is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic name is invalid: {reason}.")


def check_new_topic_name(topics: Topics, name: str) -> None:
    """Refuse a name that a new topic cannot have beside those that are there."""
    check_topic_name(name)
    if name == METADATA_TOPIC:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, f"{name} is the cluster's own and cannot be created."
        )
    if topics.find(name) is not None:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    alike = topics.find_alike(name)
    if alike is not None:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with topic '{alike}':"
            " names that differ only in '.' and '_' share their metrics.",
        )
