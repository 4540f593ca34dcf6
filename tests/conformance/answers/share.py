"""The life of a share group: its members, what they fetch and acknowledge, and its offsets."""

from collections.abc import Mapping, Sequence
from typing import Any

from moldau._native.records import Record
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest
from moldau.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from moldau.protocol.messages.share_fetch import AcknowledgementBatch as FetchedBatch
from moldau.protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.conformance.answers.questioner import Questioner
from tests.conformance.answers.requests import commit, join, joining, of_group
from tests.wire import wait_for

FIRST, SECOND = ("MoldauMoldauMoldauMol" + last for last in "AQ")
"""Member ids, which the clients draw themselves."""
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
TOPIC, GROUP = "shared", 32
LEAVE = -1
Batches = Sequence[tuple[int, int, Sequence[int]]]
"""First and last offset, and how they are acknowledged."""


def ask(asked: Questioner) -> None:
    """Walk through it."""
    asked.wire.create_topic(TOPIC, 1)
    asked.learn_topics()
    refuse(asked)
    members(asked)
    fetch(asked)
    sessions(asked)
    offsets(asked)
    describe(asked)


def beat(group: str, member_id: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=epoch, **fields
    )


def refuse(asked: Questioner) -> None:
    for key in ("group", "g:x:0", "g:AAAAAAAAAAAAAAAAAAAAAA:0", "g:MoldauMoldauMoldauMol0:x"):
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        asked.ask_until(key, request, lambda answer: answer.coordinators[0].error_code != 15)
    topics = {"subscribed_topic_names": [TOPIC]}
    asked.ask("no group", beat("", FIRST, 0, **topics))
    asked.ask("no member", beat("share-refused", "", 0, **topics))
    asked.ask("no topics", beat("share-refused", FIRST, 0))
    asked.ask("no topic", beat("share-refused", FIRST, 0, subscribed_topic_names=[]))
    asked.ask("an empty rack", beat("share-refused", FIRST, 0, rack_id="", **topics))
    asked.ask("epoch -2", beat("share-refused", FIRST, -2))
    asked.ask("nobody", beat("share-nothing", FIRST, 1))
    asked.ask("nobody leaves", beat("share-nothing", FIRST, LEAVE))


def members(asked: Questioner) -> None:
    group, topics = "share-members", {"subscribed_topic_names": [TOPIC]}
    asked.ask("joins", beat("share-joins", FIRST, 0, **topics))
    ready(asked, group)
    epoch = asked.ask("again", beat(group, FIRST, 0, **topics)).member_epoch
    asked.ask("wrong epoch", beat(group, FIRST, epoch + 5))
    asked.ask("another", beat(group, SECOND, 0, **topics))
    asked.ask("unknown", beat(group, "nobody", epoch))
    for number in range(2, 5):
        asked.ask(f"member {number}", beat(group, f"member-{number}", 0, **topics))
    asked.ask("leaves", beat(group, SECOND, LEAVE))
    asked.ask("left", beat(group, SECOND, epoch))
    asked.ask("unknown topics", beat("share-unknown", FIRST, 0, subscribed_topic_names=["nope"]))
    asked.ask("another type's", joining(group, FIRST, "a"))
    asked.ask("another type's", join(group))
    asked.ask("another type's", commit(group, {"a": {0: 1}}), 9)
    asked.ask("another type's", beat("prepared", FIRST, 0, **topics))


def ready(asked: Questioner, group: str, member_id: str = FIRST) -> None:
    """Let a group read from the start, and have a member with all partitions."""
    reset = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    change = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[reset])
    asked.call(IncrementalAlterConfigsRequest(resources=[change]))
    epoch = 0

    def is_assigned() -> bool:
        nonlocal epoch
        fields = {} if epoch else {"subscribed_topic_names": [TOPIC]}
        answer = asked.call(beat(group, member_id, epoch, **fields))
        assert answer.error_code == 0
        epoch = answer.member_epoch
        return bool(answer.assignment and answer.assignment.topic_partitions)

    wait_for(is_assigned)


def fetched(
    asked: Questioner,
    group: str,
    epoch: int,
    batches: Batches = (),
    *,
    member_id: str = FIRST,
    partitions: Sequence[int] = (0,),
    **fields: Any,
) -> ShareFetchRequest:
    rows = [
        FetchPartition(
            partition_index=index,
            acknowledgement_batches=[
                FetchedBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                for first, last, types in batches
            ],
        )
        for index in partitions
    ]
    topic_id = fields.pop("topic_id", asked.topics[TOPIC])
    topics = [FetchTopic(topic_id=topic_id, partitions=rows)] if rows else []
    words: Mapping[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_records": 100,
        "batch_size": 100,
        **fields,
    }
    return ShareFetchRequest(
        group_id=group, member_id=member_id, share_session_epoch=epoch, topics=topics, **words
    )


def acknowledged(
    asked: Questioner, group: str, epoch: int, batches: Batches, **fields: Any
) -> ShareAcknowledgeRequest:
    rows = [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in batches
    ]
    index = fields.pop("index", 0)
    topic_id = fields.pop("topic_id", asked.topics[TOPIC])
    place = AcknowledgePartition(partition_index=index, acknowledgement_batches=rows)
    topics = [AcknowledgeTopic(topic_id=topic_id, partitions=[place])]
    return ShareAcknowledgeRequest(
        group_id=group,
        member_id=fields.pop("member_id", FIRST),
        share_session_epoch=epoch,
        topics=topics,
        **fields,
    )


PATIENT = {"max_wait_ms": 30_000, "min_bytes": 1}
"""What a share partition needs is read beside the requests: the first fetch waits for it."""


def fetch(asked: Questioner) -> None:
    group = "share-fetch"
    for _ in range(2):
        asked.wire.produce(TOPIC, [Record(n, 1_700_000_000_000, None, b"v", []) for n in range(10)])
    ready(asked, group)
    asked.ask("a session", fetched(asked, group, 0, **PATIENT))
    asked.ask("nothing more", fetched(asked, group, 1))
    asked.ask("accepts", acknowledged(asked, group, 2, [(0, 3, [ACCEPT])]))
    asked.ask("one by one", acknowledged(asked, group, 3, [(4, 6, [ACCEPT, RELEASE, REJECT])]))
    asked.ask("the released", fetched(asked, group, 4, **PATIENT))
    asked.ask("what is done", acknowledged(asked, group, 5, [(0, 3, [ACCEPT])]))
    for epoch, (label, batch) in enumerate(
        {
            "too many types": (7, 8, [ACCEPT] * 3),
            "an unknown type": (7, 8, [9]),
            "backwards": (8, 7, [ACCEPT]),
            "no types": (7, 8, []),
            "beyond the end": (100, 101, [ACCEPT]),
            "a gap": (7, 7, [GAP]),
            "renewed, but not said": (8, 8, [RENEW]),
        }.items(),
        6,
    ):
        asked.ask(label, acknowledged(asked, group, epoch, [batch]))
    renewed = acknowledged(asked, group, 13, [(8, 8, [RENEW])], is_renew_ack=True)
    asked.ask("renewed", renewed)
    asked.ask("with a fetch", fetched(asked, group, 14, [(9, 9, [ACCEPT]), (5, 5, [REJECT])]))
    asked.ask("overlapping", fetched(asked, group, 15, [(10, 12, [ACCEPT]), (12, 13, [ACCEPT])]))
    asked.ask("the last", fetched(asked, group, -1, [(14, 19, [RELEASE])], partitions=[0]))


def sessions(asked: Questioner) -> None:
    group = "share-sessions"
    ready(asked, group)
    for version in asked.all_versions(ShareFetchRequest):
        asked.ask("no session", fetched(asked, group, 5), version)
        asked.ask("ends no session", fetched(asked, group, -1), version)
        asked.ask("no member", fetched(asked, group, 0, member_id=""), version)
        asked.ask("acknowledges at first", fetched(asked, group, 0, [(0, 0, [1])]), version)
    for version in asked.all_versions(ShareAcknowledgeRequest):
        asked.ask("no session", acknowledged(asked, group, 5, [(0, 0, [ACCEPT])]), version)
        asked.ask("at first", acknowledged(asked, group, 0, [(0, 0, [ACCEPT])]), version)
    asked.ask("a session elsewhere", fetched(asked, group, 0, **PATIENT))
    asked.ask("another partition", fetched(asked, group, 1, partitions=[9]))
    asked.ask("wrong epoch", fetched(asked, group, 9))
    asked.ask("wrong epoch", acknowledged(asked, group, 9, [(0, 0, [ACCEPT])]))
    asked.ask("no partition of it", acknowledged(asked, group, 2, [(0, 0, [1])], index=9))
    asked.ask("closes", acknowledged(asked, group, -1, [(0, 0, [ACCEPT])]))
    asked.ask("closes again", acknowledged(asked, group, -1, [(1, 1, [ACCEPT])]))


def place(topic: str, *starts: tuple[int, int]) -> AlterShareGroupOffsetsRequestTopic:
    rows = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in starts
    ]
    return AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)


def offsets(asked: Questioner) -> None:
    group = "share-offsets"
    ready(asked, group)

    def describe_them(label: str, *others: str) -> None:
        # Not a partition that the topic does not have: Kafka asks itself for it time and again, and
        # answers (with -1, as for an unknown topic) only after the members' sessions have ended.
        some = [DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])]
        unknown = [DescribeShareGroupOffsetsRequestTopic(topic_name="nope", partitions=[0])]
        for name, topics in {"all": None, "some": some, "unknown": unknown, "none": []}.items():
            groups = (group, *others) if topics is None else (group,)
            wishes = [
                DescribeShareGroupOffsetsRequestGroup(group_id=each, topics=topics)
                for each in groups
            ]
            asked.ask_all(f"{name}, {label}", DescribeShareGroupOffsetsRequest(groups=wishes))

    def alter(label: str, where: str, *topics: AlterShareGroupOffsetsRequestTopic) -> None:
        asked.ask(label, AlterShareGroupOffsetsRequest(group_id=where, topics=topics))

    def delete(label: str, where: str, *topics: str) -> None:
        rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
        asked.ask(label, DeleteShareGroupOffsetsRequest(group_id=where, topics=rows))

    describe_them("in use", "share-nothing", "", "prepared")
    alter("in use", group, place(TOPIC, (0, 5)))
    delete("in use", group, TOPIC)
    asked.call(beat(group, FIRST, LEAVE))
    for where in (group, "share-nothing", "", "prepared"):
        alter(f"of {where!r}", where, place(TOPIC, (0, 5), (9, 1)), place("nope", (0, 1)))
    alter("below zero", group, place(TOPIC, (0, -1)))
    alter("nothing", group)
    describe_them("altered")
    for where in (group, "share-nothing", "", "prepared"):
        delete(f"of {where!r}", where, TOPIC, "nope", "a")
    delete("again", group, TOPIC)
    describe_them("deleted")


def describe(asked: Questioner) -> None:
    groups = ["share-members", "share-offsets", "share-nothing", "", "prepared"]
    request = ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=True)
    asked.ask("groups", request)
    asked.ask("groups", ConsumerGroupDescribeRequest(group_ids=groups))
    asked.ask("groups", DescribeGroupsRequest(groups=groups))
    asked.ask("share groups", ListGroupsRequest(types_filter=["share"]))
    asked.ask("offsets", OffsetFetchRequest(groups=[of_group("share-members", None)]))
    asked.ask("groups", DeleteGroupsRequest(groups_names=groups))
