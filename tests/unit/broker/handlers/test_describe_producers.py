from moldau.broker.handlers.describe_producers import handle_describe_producers
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.unit.broker.world import TOPIC, World
from tests.unit.log.logs import START_MS, batch_of


def ask(w: World, topic: str = TOPIC):
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    (row,) = w.ask(handle_describe_producers, request, 0).topics[0].partitions
    return row


def test_producers_are_told():
    w = World()
    w.create()
    w.write(batch_of())
    assert not ask(w).active_producers
    w.write(batch_of(3, producer_id=9, producer_epoch=2, base_sequence=0))
    (state,) = ask(w).active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (9, 2, 2)
    assert (state.last_timestamp, state.current_txn_start_offset) == (START_MS, -1)


def test_errors():
    row = ask(World(), "nowhere")
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "nowhere-0" in row.error_message
