"""A number that changes when topics that a group reads come, go, grow or move to other racks."""

from collections.abc import Iterable
from hashlib import blake2b
from struct import pack

from moldau.metadata.image import ClusterImage
from moldau.metadata.topics import Topic


def metadata_hash(topics: Iterable[str], image: ClusterImage) -> int:
    """Return the hash of those topics that exist, 0 if none does.

    It is kept with the group, so that the next coordinator sees what changed before it came. Its
    algorithm is our own: behind a coordinator of another make the first heartbeat sees a change,
    and the group is assigned once more.
    """
    hashed = blake2b(digest_size=8)
    is_empty = True
    for name in sorted(topics):
        topic = image.topics.find(name)
        if topic is not None:
            hashed.update(_described(topic, image))
            is_empty = False
    return 0 if is_empty else int.from_bytes(hashed.digest(), signed=True)


def _described(topic: Topic, image: ClusterImage) -> bytes:
    """Return the topic in bytes; sizes stand in front, so that no two topics look alike."""
    name = topic.name.encode()
    parts = [topic.topic_id, pack(">i", len(name)), name, pack(">i", len(topic.partitions))]
    for index, partition in sorted(topic.partitions.items()):
        brokers = map(image.brokers.find, partition.replicas)
        racks = sorted(broker.rack for broker in brokers if broker is not None and broker.rack)
        parts.append(pack(">ii", index, len(racks)))
        for rack in racks:
            encoded = rack.encode()
            parts += [pack(">i", len(encoded)), encoded]
    return b"".join(parts)
