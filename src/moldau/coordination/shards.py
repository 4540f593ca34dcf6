"""Which partition of a coordinator's topic keeps what belongs to a key."""

from functools import lru_cache
from struct import unpack
from typing import Final

REMEMBERED_MAX: Final = 4096


# Asked for with every commit and every acknowledgement.
@lru_cache(maxsize=REMEMBERED_MAX)
def shard_of(key: str, shard_count: int) -> int:
    """Return the partition for a group's, transaction's or share's key, as every broker does.

    It is Java's hash of a text without its sign, so that others find what we keep.
    """
    number = 0
    encoded = key.encode("utf-16-be", "surrogatepass")
    for unit in unpack(f">{len(encoded) // 2}H", encoded):
        number = (31 * number + unit) & 0xFFFFFFFF
    if number >= 1 << 31:
        number -= 1 << 32
    # Java's smallest number has no positive counterpart: Kafka takes 0 for it.
    return 0 if number == -(1 << 31) else abs(number) % shard_count
