from moldau.consensus.events import Start, Synced
from moldau.consensus.member import QuorumMember
from moldau.controller.quorum_description import describe_quorum
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponsePartitionData,
)
from tests.unit.consensus.test_member import LOCAL, NOW, MemoryLog


def asked(*names: str) -> DescribeQuorumRequest:
    partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
    return DescribeQuorumRequest(
        topics=[DescribeQuorumRequestTopicData(topic_name=n, partitions=partitions) for n in names]
    )


def described(
    log: MemoryLog, member: QuorumMember, *names: str
) -> list[DescribeQuorumResponsePartitionData]:
    response = describe_quorum(asked(*names), member, log.end_offset, NOW)
    response.encode(2)
    return [topic.partitions[0] for topic in response.topics]


def test_the_quorum() -> None:
    log = MemoryLog()
    member = QuorumMember(LOCAL, log.history(), log, None)
    [early] = described(log, member, "__cluster_metadata")
    assert early.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    log.perform(member.handle(Start(), NOW))
    [starting] = described(log, member, "__cluster_metadata")
    assert (starting.error_code, starting.high_watermark) == (0, -1)
    member.handle(Synced(Offset(3)), NOW)
    [leading] = described(log, member, "__cluster_metadata")
    assert (leading.leader_id, leading.leader_epoch, leading.high_watermark) == (1, 1, 3)
    [voter] = leading.current_voters
    assert (voter.replica_id, voter.replica_directory_id) == (1, LOCAL.directory_id)
    assert (voter.log_end_offset, voter.last_fetch_timestamp) == (3, NOW.wall_ms)


def test_there_is_no_other() -> None:
    log = MemoryLog()
    member = QuorumMember(LOCAL, log.history(), log, None)
    log.perform(member.handle(Start(), NOW))
    assert [each.error_code for each in described(log, member, "clicks")] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    both = described(log, member, "__cluster_metadata", "clicks")
    assert [each.error_code for each in both] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
