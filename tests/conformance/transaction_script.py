"""Requests about transactions, one after another: what is asked depends on what was answered."""

from collections.abc import Sequence
from typing import Any, Final

from moldau._native.records import Record
from moldau.coordination.producer import ProducerIdentity
from moldau.protocol.apis import APIS
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.protocol.schema import Message
from moldau.records.batch import TRANSACTIONAL, build_batch
from tests.wire import LATEST, Wire, wait_for

TOPIC: Final = "orders"
GROUP: Final = "readers"
RESPONSES: Final = {api.key: api for api in APIS}
OPEN: Final = ("PrepareCommit", "PrepareAbort")


class Script:
    """Asks a broker, and keeps the answers by name."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.answers: dict[str, Any] = {}

    def run(self, level: int) -> dict[str, Any]:
        """Ask everything; at level 0 Kafka chokes on clients that know more than that."""
        for key, key_type in ((GROUP, 0), ("warm", 1)):
            request = FindCoordinatorRequest(key=key, key_type=key_type)
            wait_for(lambda r=request: not self.say(r, FindCoordinatorResponse, 1).error_code)
        wait_for(lambda: not self.warm().error_code)
        self.initialize()
        self.older_protocol()
        if level > 0:
            self.newer_protocol()
            self.fencing()
            self.offsets()
            self.several()
            self.hanging()
        self.show()
        return self.answers

    def say(self, request: Message, response: type[Any], version: int) -> Any:
        return self.wire.call(request, response, version)

    def warm(self) -> Any:
        request = InitProducerIdRequest(transactional_id="warm", transaction_timeout_ms=60_000)
        return self.say(request, InitProducerIdResponse, 5)

    def ask(self, name: str, request: Message, version: int) -> Any:
        assert name not in self.answers, name
        answer = self.say(request, RESPONSES[request._api_key].response_class, version)
        self.answers[name] = answer
        return answer

    # Requests.

    def init(self, name: str, id_: str | None, version: int = 5, **fields: Any) -> ProducerIdentity:
        fields.setdefault("transaction_timeout_ms", 60_000)
        request = InitProducerIdRequest(transactional_id=id_, **fields)
        answer = self.ask(f"{name}: init v{version}", request, version)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def add(
        self,
        name: str,
        id_: str,
        producer: ProducerIdentity,
        *partitions: int,
        version: int = 3,
        topic: str = TOPIC,
        **fields: Any,
    ) -> Any:
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=partitions)]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=id_,
                v3_and_below_producer_id=producer.id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=topics,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=id_,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                topics=topics,
                **fields,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        return self.ask(f"{name}: add v{version}", request, version)

    def end(
        self,
        name: str,
        id_: str,
        producer: ProducerIdentity,
        *,
        commit: bool = True,
        version: int = 5,
    ) -> ProducerIdentity:
        request = EndTxnRequest(
            transactional_id=id_,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        answer = self.ask(f"{name}: end v{version}", request, version)
        self.settle(id_)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def settle(self, id_: str) -> None:
        """Wait until no markers are to be written."""
        request = DescribeTransactionsRequest(transactional_ids=[id_])

        def is_over() -> bool:
            (state,) = self.say(request, DescribeTransactionsResponse, 0).transaction_states
            return state.transaction_state not in OPEN

        if id_:
            wait_for(is_over)

    def produce(
        self,
        name: str,
        id_: str | None,
        producer: ProducerIdentity,
        sequence: int = 0,
        *,
        version: int = 12,
        partition: int = 0,
        attributes: int = TRANSACTIONAL,
    ) -> Any:
        batch = build_batch(
            [Record(0, 1_700_000_000_000, b"k", b"v")],
            attributes=attributes,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
        request = ProduceRequest(
            transactional_id=id_,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=TOPIC,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        return self.ask(f"{name}: produce v{version}", request, version)

    def describe(self, name: str, *ids: str) -> None:
        self.ask(f"{name}: describe", DescribeTransactionsRequest(transactional_ids=ids), 0)

    def producers(self, name: str, partition: int = 0) -> None:
        topics = [TopicRequest(name=TOPIC, partition_indexes=[partition])]
        answer = self.ask(f"{name}: producers", DescribeProducersRequest(topics=topics), 0)
        row = answer.topics[0].partitions[0]
        row.active_producers = sorted(row.active_producers, key=lambda each: each.producer_id)
        for isolation in (0, 1):
            listed = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation,
                topics=[ListOffsetsTopic(name=TOPIC, partitions=[listed])],
            )
            self.ask(f"{name}: offsets, isolation {isolation}", request, 7)

    def commit_offsets(
        self,
        name: str,
        id_: str,
        producer: ProducerIdentity,
        offset: int,
        version: int,
        **fields: Any,
    ) -> Any:
        group = fields.pop("group_id", GROUP)
        indexes: Sequence[int] = fields.pop("partitions", (0,))
        topic = fields.pop("topic", TOPIC)
        rows = [
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata="m"
            )
            for index in indexes
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=id_,
            group_id=group,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=rows)],
            **fields,
        )
        return self.ask(f"{name}: offsets v{version}", request, version)

    def add_offsets(self, name: str, id_: str, producer: ProducerIdentity, version: int = 3) -> Any:
        request = AddOffsetsToTxnRequest(
            transactional_id=id_,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            group_id=GROUP,
        )
        return self.ask(f"{name}: add offsets v{version}", request, version)

    # What is asked.

    def initialize(self) -> None:
        self.init("nobody", None)
        self.init("no name", "")
        self.init("half expected", "x", producer_id=5)
        for timeout_ms in (0, -1, 900_001, 2_147_483_647):
            self.init(f"timeout {timeout_ms}", "x", transaction_timeout_ms=timeout_ms)
        for version in range(6):
            self.init(f"first of v{version}", f"v{version}", version)
            self.init(f"second of v{version}", f"v{version}", version)
        first = self.init("known", "known")
        expected = {"producer_id": first.id, "producer_epoch": first.epoch}
        self.init("known, expected", "known", **expected)
        self.init("known, expected again", "known", **expected)
        for version in (3, 4, 5):
            wrong = {"producer_id": first.id, "producer_epoch": 9}
            self.init("wrong epoch", "known", version, **wrong)
            self.init("wrong id", "known", version, producer_id=77_777, producer_epoch=0)
        self.init("expected of nothing", "fresh", producer_id=first.id, producer_epoch=3)
        self.describe("initialized", "known", "fresh", "nobody", "")

    def older_protocol(self) -> None:
        producer = self.init("old", "old")
        self.end("old, nothing", "old", producer, version=4)
        self.end("old, nothing to abort", "old", producer, version=4, commit=False)
        for version in (3, 7, 10, 11):
            self.produce(f"old, not added, {version}", "old", producer, version=version)
        self.add("old", "old", producer, 0)
        self.produce("old", "old", producer, version=11)
        self.produce("old, again", "old", producer, version=11)
        self.produce("old, next", "old", producer, 1, version=9)
        self.produce("old, other partition", "old", producer, partition=1, version=11)
        self.produce("old, gap", "old", producer, 7, version=11)
        self.produce("old, not in it", "old", producer, 2, version=11, attributes=0)
        self.describe("old", "old")
        self.producers("old")
        self.end("old", "old", producer, version=4)
        self.producers("old, committed")
        self.end("old, again", "old", producer, version=4)
        self.end("old, otherwise", "old", producer, version=4, commit=False)
        self.produce("old, behind it", "old", producer, 2, version=11)
        self.add("old, second", "old", producer, 0, 1, version=0)
        self.produce("old, second", "old", producer, 2, version=11)
        self.end("old, second", "old", producer, version=0, commit=False)
        self.producers("old, aborted")
        self.producers("old, aborted elsewhere", 1)
        self.describe("old, aborted", "old")

    def newer_protocol(self) -> None:
        first = self.init("new", "new")
        self.end("new, nothing", "new", first)
        second = self.end("new, nothing to abort", "new", first, commit=False)
        self.end("new, nothing to abort again", "new", first, commit=False)
        self.end("new, nothing to commit again", "new", first)
        self.produce("new, with a gap", "new", second, 3, partition=2)
        self.produce("new", "new", second, partition=2)
        self.produce("new, next", "new", second, 1, partition=2)
        self.produce("new, elsewhere", "new", second, partition=1)
        self.produce("new, nowhere", "new", second, partition=7)
        self.describe("new", "new")
        self.producers("new", 2)
        third = self.end("new", "new", second)
        self.end("new, again", "new", second)
        self.end("new, otherwise", "new", second, commit=False)
        self.produce("new, behind it", "new", second, 2, partition=2)
        self.producers("new, committed", 2)
        self.produce("new, third", "new", third, partition=2)
        self.end("new, late", "new", second)
        self.end("new, third", "new", third, commit=False)
        self.producers("new, aborted", 2)
        self.describe("new, aborted", "new")

    def fencing(self) -> None:
        zombie = self.init("fence", "fence")
        self.produce("fence", "fence", zombie, partition=3)
        self.init("fence, while open", "fence")
        self.settle("fence")
        living = self.init("fence, then", "fence")
        self.describe("fence", "fence")
        self.producers("fence", 3)
        stranger = ProducerIdentity(living.id + 100, living.epoch)
        for version in (0, 1, 2, 3):
            self.add("zombie", "fence", zombie, 0, version=version)
            self.add("stranger", "fence", stranger, 0, version=version)
        for version in range(6):
            self.end("zombie", "fence", zombie, version=version)
            self.end("stranger", "fence", stranger, version=version)
        for version in (11, 12):
            self.produce("zombie", "fence", zombie, 1, partition=3, version=version)
            self.produce("stranger", "fence", stranger, partition=3, version=version)
            self.produce("zombie elsewhere", "fence", zombie, partition=2, version=version)
        for version in range(5):
            self.add_offsets("zombie", "fence", zombie, version)
        for version in range(6):
            self.commit_offsets("zombie", "fence", zombie, 5, version)
        self.produce("no id", None, living, partition=3)
        self.produce("unknown id", "never", living, partition=3)
        self.produce("unknown id, older", "never", living, partition=3, version=11)
        self.end("no name", "", living)
        self.end("unknown id", "never", living)
        self.add("no name", "", living, 0)
        self.add("unknown id", "never", living, 0)
        self.add("unknown partition", "fence", living, 0, 99)
        self.add("unknown topic", "fence", living, 0, topic="none")
        self.add("internal topic", "fence", living, 0, topic="__consumer_offsets")

    def offsets(self) -> None:
        for version in range(5):
            id_ = f"offsets{version}"
            producer = self.init(id_, id_)
            self.commit_offsets(f"{id_}, not added", id_, producer, 3, version)
            self.add_offsets(id_, id_, producer, version)
            self.commit_offsets(id_, id_, producer, 5 + version, version)
            self.commit_offsets(f"{id_}, missing", id_, producer, 9, version, partitions=(0, 99))
            self.describe(id_, id_)
            self.end(id_, id_, producer, version=3)
        producer = self.init("offsets", "offsets")
        self.commit_offsets("offsets", "offsets", producer, 50, 5)
        self.commit_offsets("no group", "offsets", producer, 50, 5, group_id="")
        self.commit_offsets("no topic", "offsets", producer, 50, 5, topic="none")
        self.commit_offsets(
            "no member",
            "offsets",
            producer,
            50,
            5,
            generation_id_or_member_epoch=3,
            member_id="nobody",
        )
        self.describe("offsets", "offsets")
        self.end("offsets", "offsets", producer)
        self.commit_offsets("offsets, late", "offsets", producer, 60, 5)
        self.commit_offsets("offsets, late, older", "offsets", producer, 60, 4)

    def several(self) -> None:
        producer = self.init("several", "several")
        for version in (4, 5):
            self.add("several, asked", "several", producer, 0, version=version, verify_only=True)
            self.add("several", "several", producer, version - 4, version=version)
            self.add("asked", "several", producer, 0, 3, version=version, verify_only=True)
            self.add("unknown", "never", producer, 0, version=version, verify_only=True)
        self.describe("several", "several")
        self.end("several", "several", producer)

    def hanging(self) -> None:
        self.init("hang", "hang")
        producer = self.init("hang, second", "hang")
        self.produce("hang", "hang", producer, partition=3)
        for name, version, epoch, coordinator_epoch, partition in (
            ("elsewhere", 1, 0, 0, 99),
            ("fenced", 1, -1, 0, 3),
            ("of nobody", 1, -2, 0, 3),
            ("of the newer kind", 2, 0, 0, 3),
            ("aborted", 1, 0, 1, 3),
            ("of an old coordinator", 1, 0, 0, 3),
            ("again", 1, 0, 1, 3),
        ):
            marker = WritableTxnMarker(
                producer_id=producer.id,
                producer_epoch=producer.epoch + epoch,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[partition])],
                coordinator_epoch=coordinator_epoch,
                transaction_version=2,
            )
            request = WriteTxnMarkersRequest(markers=[marker])
            # One that is there is not written again by us: what follows is at other offsets.
            self.producers(f"hang, before {name}", 3)
            self.ask(f"hang: marker {name}", request, version)

    def show(self) -> None:
        for name, fields, version in (
            ("all", {}, 0),
            ("empty", {"state_filters": ["Empty"]}, 0),
            ("unknown", {"state_filters": ["Strange", "Ongoing"]}, 1),
            ("long", {"duration_filter": 3_600_000}, 1),
            ("any duration", {"duration_filter": 0, "state_filters": ["Ongoing"]}, 1),
            ("ids", {"transactional_id_pattern": "v[0-2]"}, 2),
            ("part of an id", {"transactional_id_pattern": "v"}, 2),
            ("no pattern", {"transactional_id_pattern": ""}, 2),
            ("bad pattern", {"transactional_id_pattern": "(v"}, 2),
        ):
            answer = self.ask(f"list {name}", ListTransactionsRequest(**fields), version)
            answer.transaction_states = sorted(
                answer.transaction_states, key=lambda state: state.transactional_id
            )
