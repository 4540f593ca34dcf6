"""A consumer group's durable state: what its records add up to."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.consumer.member import ConsumerMember, Owned
from moldau.groups.consumer.records import no_group_records
from moldau.groups.group import GroupType, PartitionCheck
from moldau.groups.modern.partitions import NO_PARTITIONS, Partitions
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode

EPOCHS_COMMITTED_SINCE: Final = 9
"""The version of OffsetCommit that can say a member's epoch."""


@dataclass(slots=True)
class ConsumerGroup:
    """A `groups.group.Group`; only the replay of its records changes it."""

    group_id: str
    epoch: int = 1
    """0 is the epoch of a member that joins."""
    metadata_hash: int = 0
    target_epoch: int = 0
    target_ms: int = 0
    """When the target was made, by the wall clock; 0 if that is not known."""
    targets: dict[str, Partitions] = field(default_factory=dict)
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_member_ids: dict[str, str] = field(default_factory=dict)
    """By the names of their instances."""
    regexes: dict[str, frozenset[str]] = field(default_factory=dict)
    """The topics that each regular expression stands for, as far as they were looked for."""
    regex_users: dict[str, int] = field(default_factory=dict)
    """How many members have each regular expression."""
    has_partition_metadata: bool = False
    """Whether a release before 4.2 wrote what the hash is for now."""
    owners: dict[tuple[TopicId, int], str] = field(default_factory=dict)
    """The member that has each partition, or has not given it up yet."""

    def copy(self) -> "ConsumerGroup":
        """Return a copy that changes for itself."""
        other = copy(self)
        other.targets = dict(self.targets)
        other.members = dict(self.members)
        other.static_member_ids = dict(self.static_member_ids)
        other.regexes = dict(self.regexes)
        other.regex_users = dict(self.regex_users)
        other.owners = dict(self.owners)
        return other

    # What is known.

    @property
    def type(self) -> GroupType:
        """What its members speak."""
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        """What the members are to each other."""
        return "consumer"

    @property
    def state_name(self) -> str:
        """Its state in Kafka's words."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def find_static(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member that an instance is, or was last."""
        member_id = None if instance_id is None else self.static_member_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def get_static(self, instance_id: str, member_id: str) -> ConsumerMember:
        """Return the member that an instance is; `Refusal` if it is another one by now, or none."""
        member = self.find_static(instance_id)
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            raise Refusal(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member"
                f" {member.member_id}.",
            )
        return member

    def get_member(self, member_id: str | None) -> ConsumerMember:
        """Return a member; `Refusal` if there is none of that id."""
        member = None if member_id is None else self.members.get(member_id)
        if member is None:
            raise Refusal(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def target_of(self, member_id: str) -> Partitions:
        """Return what a member is to get."""
        return self.targets.get(member_id, NO_PARTITIONS)

    def topic_names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that a member reads, by name or as its regular expression says."""
        return member.topic_names | self.regexes.get(member.topic_regex, frozenset())

    def topic_names(self) -> frozenset[str]:
        """Return all topics that a member reads, whether they exist or not."""
        names = {name for member in self.members.values() for name in member.topic_names}
        return frozenset(names.union(*self.regexes.values()))

    def unused_regexes(self) -> set[str]:
        """Return the regular expressions that were looked for, and that no member has any more."""
        return self.regexes.keys() - self.regex_users.keys()

    # What others ask of any group.

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> PartitionCheck | None:
        """Refuse all but members; an old epoch will do for partitions that they have since then."""
        if epoch < 0 and not self.members:
            return None
        if is_transactional and epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.get_member(member_id)
        is_classic = member.classic is not None
        if not is_transactional and not is_classic and version < EPOCHS_COMMITTED_SINCE:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer"
                " group protocol",
            )
        if epoch > member.epoch:
            raise _stale(member, f"{epoch} is newer than the current member epoch {member.epoch}.")
        return None if epoch == member.epoch else partial(_check_partition, member, epoch)

    def check_offset_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse a member that asks with an old epoch."""
        if member_id is None and epoch < 0:
            return
        member = self.get_member(member_id)
        if epoch != member.epoch:
            raise _stale(
                member, f"{epoch} does not match the expected member epoch {member.epoch}."
            )

    def check_offset_delete(self) -> None:
        """Let offsets be deleted: of topics that are read `is_subscribed_to` tells."""

    def check_delete(self) -> None:
        """Refuse to delete a group with members."""
        if self.members:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic."""
        return any(topic in member.topic_names for member in self.members.values()) or any(
            topic in names for names in self.regexes.values()
        )

    def expires_offsets_since(self, commit_ms: int) -> int | None:
        """Offsets of topics that no member reads are unused from their commit on."""
        return commit_ms

    def tombstones(self) -> Iterator[StoredRecord]:
        """Return the records that make the group forgotten, without its offsets."""
        return no_group_records(self.group_id, self.members, self.regexes)

    # What its records change (`consumer.replay`).

    def put(self, member: ConsumerMember) -> None:
        """Set a member as it is now; for replay only."""
        old = self.members.get(member.member_id)
        if (
            old is None
            or old.assigned is not member.assigned
            or old.revoking is not member.revoking
        ):
            self._disown(old)
            for owned in (member.assigned, member.revoking):
                for partition in _walk(owned):
                    self.owners[partition] = member.member_id
        self._count_regex(old, member)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_member_ids[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member; for replay only."""
        member = self.members.pop(member_id, None)
        self._disown(member)
        self._count_regex(member, None)
        # The member that took a static member's place may be recorded already.
        instance_id = None if member is None else member.instance_id
        if instance_id is not None and self.static_member_ids.get(instance_id) == member_id:
            del self.static_member_ids[instance_id]

    def _count_regex(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        for member, change in ((old, -1), (new, 1)):
            if member is not None and member.topic_regex:
                count = self.regex_users.pop(member.topic_regex, 0) + change
                if count:
                    self.regex_users[member.topic_regex] = count

    def _disown(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        for owned in (member.assigned, member.revoking):
            for partition in _walk(owned):
                if self.owners.get(partition) == member.member_id:
                    del self.owners[partition]


def _walk(owned: Owned) -> Iterator[tuple[TopicId, int]]:
    for topic_id, partitions in owned.items():
        for index in partitions:
            yield topic_id, index


def _check_partition(
    member: ConsumerMember, epoch: int, topic: str, topic_id: bytes, partition: int
) -> None:
    """Refuse a commit of an epoch in which the member did not have the partition (KIP-1251)."""
    for owned in (member.assigned, member.revoking):
        since = owned.get(TopicId(topic_id), {}).get(partition)
        if since is not None:
            if epoch >= since:
                return
            raise _stale(
                member,
                f"{epoch} is older than the assignment epoch {since} of {topic}-{partition}.",
            )
    raise _stale(member, f"{epoch}: {topic}-{partition} is not assigned or pending revocation.")


def _stale(member: ConsumerMember, words: str) -> Refusal:
    if member.classic is not None:
        return Refusal(ErrorCode.ILLEGAL_GENERATION, f"The received generation id {words}")
    return Refusal(ErrorCode.STALE_MEMBER_EPOCH, f"The received member epoch {words}")
