"""The headers of a dead letter, which say where it comes from and why it is one."""

from typing import Final

TOPIC: Final = "dead-letter.topic"
PARTITION: Final = "dead-letter.partition"
OFFSET: Final = "dead-letter.offset"
REASON: Final = "dead-letter.reason"

DEAD_LETTER_HEADERS: Final = (TOPIC, PARTITION, OFFSET, REASON)
"""They come behind the headers that the record had."""


def dead_letters_topic(app_name: str) -> str:
    """Return the topic that an app's dead letters go to."""
    return f"{app_name}.dead-letters"
