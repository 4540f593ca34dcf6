"""DescribeQuorum v0-v2. v1 times; v2 directory ids, messages and the nodes' listeners."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.protocol.schema import ZERO_UUID


def handle_describe_quorum(broker: Broker, call: Call, request: DescribeQuorumRequest) -> None:
    """Have the quorum's leader tell about it."""

    def described(response: DescribeQuorumResponse) -> None:
        if call.version < 2:
            response.nodes = ()
            for topic in response.topics:
                for partition in topic.partitions:
                    for replica in (*partition.current_voters, *partition.observers):
                        replica.replica_directory_id = ZERO_UUID
        call.answer(response)

    broker.controller.describe_quorum(request, described)
