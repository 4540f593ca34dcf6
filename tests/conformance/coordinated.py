"""Questions to a group's coordinator that may just have been found."""

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from tests.wire import wait_for

COMING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
"""A coordinator may be found before it knows that it is one, and librdkafka tells that."""

Answer = TypeVar("Answer")


def when_coordinated(ask: Callable[[], Answer]) -> Answer:
    """Ask librdkafka until there is an answer."""
    answers: list[Answer] = []

    def is_answered() -> bool:
        try:
            answers.append(ask())
        except KafkaException as error:
            if error.args[0].code() not in COMING:
                raise
        return bool(answers)

    wait_for(is_answered)
    return answers[0]
