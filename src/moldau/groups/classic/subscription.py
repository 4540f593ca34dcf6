"""What classic consumers tell each other, as far as a broker has to know."""

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError  # noqa: N812 - struct's own name says nothing here
from typing import Final

from moldau.kernel.errors import ProtocolError
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

_VERSION: Final = Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics of these subscriptions, None if one cannot be read.

    All versions begin as the first one does, so that later ones need not be known here.
    """
    plan = ConsumerProtocolSubscription.plan(0)
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            _VERSION.unpack_from(subscription)
            read, _ = plan.decode_from(subscription, _VERSION.size)
        except (StructError, ProtocolError):
            return None
        topics.update(read.topics)
    return frozenset(topics)
