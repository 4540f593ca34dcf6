from moldau.consensus.events import Start
from moldau.consensus.member import QuorumMember
from moldau.controller.quorum_description import describe_quorum
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponsePartitionData,
)
from moldau.simulation.quorum_log import MemoryQuorumLog, formatted
from tests.unit.consensus.test_member import LOCAL, NOW, member_of, perform, synced


def asked(*names: str) -> DescribeQuorumRequest:
    partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
    return DescribeQuorumRequest(
        topics=[DescribeQuorumRequestTopicData(topic_name=n, partitions=partitions) for n in names]
    )


def described(
    log: MemoryQuorumLog, member: QuorumMember, *names: str
) -> list[DescribeQuorumResponsePartitionData]:
    response = describe_quorum(asked(*names), member, log.end_offset, NOW)
    response.encode(2)
    return [topic.partitions[0] for topic in response.topics]


def test_the_quorum() -> None:
    log = formatted((LOCAL,))
    member = member_of(log)
    [early] = described(log, member, "__cluster_metadata")
    assert early.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    perform(log, member.handle(Start(), NOW))
    [starting] = described(log, member, "__cluster_metadata")
    assert (starting.error_code, starting.high_watermark) == (0, -1)
    synced(member, log, 3)
    [leading] = described(log, member, "__cluster_metadata")
    assert (leading.leader_id, leading.leader_epoch, leading.high_watermark) == (1, 1, 3)
    [voter] = leading.current_voters
    assert (voter.replica_id, voter.replica_directory_id) == (1, LOCAL.directory_id)
    assert (voter.log_end_offset, voter.last_fetch_timestamp) == (3, NOW.wall_ms)


def test_there_is_no_other() -> None:
    log = formatted((LOCAL,))
    member = member_of(log)
    perform(log, member.handle(Start(), NOW))
    assert [each.error_code for each in described(log, member, "clicks")] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    both = described(log, member, "__cluster_metadata", "clicks")
    assert [each.error_code for each in both] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
