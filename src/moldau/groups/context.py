"""What groups need to know from outside."""

from collections.abc import Mapping
from typing import Protocol

from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings


class GroupContext(Protocol):
    """The broker around a group's coordinator."""

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""

    @property
    def image(self) -> ClusterImage:
        """The cluster, as this broker knows it."""

    @property
    def record_bytes_max(self) -> int:
        """How large the key and the value of a record may be, together."""

    @property
    def topics_version(self) -> int:
        """A number that is another one when topics came, grew or went."""

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Return what is set for a group (KIP-848's group configs), by dotted name."""

    def entropy(self, size: int) -> bytes:
        """Return random bytes, for the ids of members."""
