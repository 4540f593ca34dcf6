"""What classic consumers say inside JoinGroup and SyncGroup, and what it means here."""

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812 - struct's own name says nothing here
from typing import TYPE_CHECKING, Final, Protocol

from moldau.groups.modern.partitions import Partitions
from moldau.kernel.errors import ProtocolError
from moldau.metadata.image import ClusterImage
from moldau.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from moldau.protocol.schema import Message

if TYPE_CHECKING:
    from moldau.kernel.ids import TopicId

_VERSION: Final = Struct(">h")


class _Listed(Protocol):
    topic: str
    partitions: Sequence[int]


def read_subscription(content: bytes) -> ConsumerProtocolSubscription:
    """Return what a member wants to read; `ProtocolError` if it cannot be understood."""
    read = _read(ConsumerProtocolSubscription, content)
    assert isinstance(read, ConsumerProtocolSubscription)
    return read


def read_assignment(content: bytes, image: ClusterImage) -> Partitions:
    """Return what a member was given; `ProtocolError` if it cannot be understood."""
    if not content:
        # It has not heard of its part yet.
        return {}
    read = _read(ConsumerProtocolAssignment, content)
    assert isinstance(read, ConsumerProtocolAssignment)
    return partitions_by_id(read.assigned_partitions, image)


def partitions_by_id(listed: Iterable[_Listed], image: ClusterImage) -> Partitions:
    """Return partitions of the topics that there are."""
    found: dict[TopicId, frozenset[int]] = {}
    for each in listed:
        topic = image.topics.find(each.topic)
        if topic is not None and each.partitions:
            found[topic.topic_id] = frozenset(each.partitions)
    return found


def write_assignment(partitions: Partitions, subscription: bytes, image: ClusterImage) -> bytes:
    """Return a member's part, in the version that the member speaks."""
    listed = []
    for topic_id, indexes in sorted(partitions.items()):
        topic = image.topics.find_by_id(topic_id)
        if topic is not None:
            listed.append(
                ConsumerProtocolAssignmentTopicPartition(
                    topic=topic.name, partitions=sorted(indexes)
                )
            )
    version = _known_version(ConsumerProtocolAssignment, subscription)
    written = ConsumerProtocolAssignment(assigned_partitions=listed).encode(version)
    return _VERSION.pack(version) + written


def _read(cls: type[Message], content: bytes) -> Message:
    read: Message
    read, _ = cls.plan(_known_version(cls, content)).decode_from(content, _VERSION.size)
    return read


def _known_version(cls: type[Message], content: bytes) -> int:
    """Return the version of what a member said; later ones begin as the last one known here."""
    try:
        (version,) = _VERSION.unpack_from(content)
    except StructError:
        raise ProtocolError("a consumer's words have no version") from None
    if version < 0:
        raise ProtocolError(f"a consumer speaks version {version}")
    return min(int(version), cls._versions[1])
