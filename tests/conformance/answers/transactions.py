"""The life of transactions, in the protocol of today and in the older one."""

import time
from typing import Any

from moldau._native.records import Record
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest
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
from tests.conformance.answers.classic import NOBODY
from tests.conformance.answers.offsets import stable
from tests.conformance.answers.questioner import CONCURRENT_TRANSACTIONS, Questioner
from tests.conformance.answers.requests import of_group
from tests.conformance.answers.setting import TRANSACTION_KEY, find_transaction_coordinator
from tests.wire import wait_for

Ids = tuple[int, int]
"""A producer's id and epoch."""
STRANGER = (987_654, 3)
OF_TODAY = 5
"""EndTxn's version that bumps the epoch; InitProducerId v6 is for two-phase commits."""
IMPLICIT = 12
"""Produce's version that adds its partitions by itself."""
COMMITTED = 1


def ask(asked: Questioner) -> None:
    """Walk through it."""
    find_transaction_coordinator(asked)
    init(asked)
    add_partitions(asked)
    older_protocol(asked)
    todays_protocol(asked)
    offsets(asked)
    bump_under_way(asked)
    describe(asked)
    verify(asked)
    markers(asked)
    timeout(asked)


def initial(name: str | None, **fields: Any) -> InitProducerIdRequest:
    words = {"transaction_timeout_ms": 60_000, **fields}
    return InitProducerIdRequest(transactional_id=name, **words)


def started(asked: Questioner, name: str) -> Ids:
    """Get an id for a name."""
    answer: Any = asked.call(initial(name))
    while answer.error_code == CONCURRENT_TRANSACTIONS:
        answer = asked.call(initial(name))
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def added(name: str, ids: Ids, *places: tuple[str, list[int]]) -> AddPartitionsToTxnRequest:
    """Write the request as producers do, in versions up to 3."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=ids[0],
        v3_and_below_producer_epoch=ids[1],
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=partitions)
            for topic, partitions in places
        ],
    )


def ended(name: str, ids: Ids, *, committed: bool = True) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=name, producer_id=ids[0], producer_epoch=ids[1], committed=committed
    )


def produced(
    asked: Questioner, name: str | None, ids: Ids, sequence: int = 0, **fields: Any
) -> ProduceRequest:
    batch = build_batch(
        [Record(0, int(time.time() * 1000), None, b"v")],
        producer_id=ids[0],
        producer_epoch=ids[1],
        base_sequence=sequence,
        attributes=TRANSACTIONAL,
    )
    topic, index = fields.get("topic", "a"), fields.get("index", 0)
    rows = [PartitionProduceData(index=index, records=batch)]
    data = TopicProduceData(name=topic, topic_id=asked.topics[topic], partition_data=rows)
    return ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5000, topic_data=[data])


def end_until_done(asked: Questioner, name: str, request: Message, version: int) -> Any:
    """Ask while the transaction before is still being ended, and wait for the end of this one."""
    answer = asked.ask_until(
        name, request, lambda answer: answer.error_code != CONCURRENT_TRANSACTIONS, version
    )
    ending = ListTransactionsRequest(state_filters=["PrepareCommit", "PrepareAbort"])
    wait_for(lambda: not asked.call(ending).transaction_states)
    return answer


def init(asked: Questioner) -> None:
    for version in asked.all_versions(FindCoordinatorRequest, 1):
        for key in ("k", ""):
            words: dict[str, Any] = {"key": key} if version < 4 else {"coordinator_keys": [key]}
            request = FindCoordinatorRequest(key_type=TRANSACTION_KEY, **words)
            asked.ask(f"{key!r}", request, version)
    for version in asked.all_versions(InitProducerIdRequest):
        asked.ask("no name", initial(None), version)
        asked.ask("an empty name", initial(""), version)
        for timeout_ms in (0, -1, 900_001, 900_000, 1):
            request = initial(f"init-{version}", transaction_timeout_ms=timeout_ms)
            asked.ask(f"{timeout_ms} ms", request, version)
        asked.ask("again", initial(f"init-{version}"), version)
        if version < 3:
            continue
        named = f"known-{version}"
        first = asked.ask("the first", initial(named), version)
        known = {"producer_id": first.producer_id, "producer_epoch": first.producer_epoch}
        asked.ask("as known", initial(named, **known), version)
        asked.ask("as known, tried again", initial(named, **known), version)
        asked.ask("by another", initial(named), version)
        asked.ask("of old", initial(named, **known), version)
        early = {**known, "producer_epoch": 99}
        asked.ask("of tomorrow", initial(named, **early), version)
        asked.ask("a stranger's", initial(named, producer_id=5, producer_epoch=0), version)
        asked.ask("unknown to us", initial(f"new-{version}", **known), version)
        for half in ({"producer_id": 5}, {"producer_epoch": 5}):
            asked.ask(f"{half}", initial(named, **half), version)


def add_partitions(asked: Questioner) -> None:
    ids = started(asked, "adding")
    for version in (1, 2, 3):
        asked.ask("no name", added("", ids, ("a", [0])), version)
        asked.ask("an unknown name", added("unknown", ids, ("a", [0])), version)
        asked.ask("a stranger", added("adding", STRANGER, ("a", [0])), version)
        for change in (-1, 1):
            wrong = (ids[0], ids[1] + change)
            asked.ask(f"epoch {change:+}", added("adding", wrong, ("a", [0])), version)
        asked.ask("no partition", added("adding", ids, ("a", [0, 9])), version)
        asked.ask("no topic", added("adding", ids, ("nope", [0]), ("a", [1])), version)
        asked.ask("an internal topic", added("adding", ids, ("__consumer_offsets", [0])), version)
        asked.ask("nothing", added("adding", ids), version)
    asked.ask("one", added("adding", ids, ("a", [0])), 3)
    asked.ask("again", added("adding", ids, ("a", [0])), 3)
    asked.ask("another", added("adding", ids, ("a", [0, 1]), ("b", [0])), 3)
    end_until_done(asked, "what was added", ended("adding", ids, committed=False), 4)


def older_protocol(asked: Questioner) -> None:
    """Up to EndTxn v4 a producer adds partitions first, and keeps its epoch."""
    for version in (*range(asked.versions[26][0], OF_TODAY), OF_TODAY):
        name = f"ended-{version}"
        ids = started(asked, name)
        asked.ask("an unknown name", ended("unknown", ids), version)
        asked.ask("no name", ended("", ids), version)
        asked.ask("a stranger", ended(name, STRANGER), version)
        for change in (-1, 1):
            asked.ask(f"epoch {change:+}", ended(name, (ids[0], ids[1] + change)), version)
        asked.ask("nothing to commit", ended(name, ids), version)
        if version == OF_TODAY:
            continue
        asked.ask("nothing to abort", ended(name, ids, committed=False), version)
        asked.ask("before it is added", produced(asked, name, ids), 11)
        asked.call(added(name, ids, ("a", [0])), 3)
        asked.ask("of a transaction", produced(asked, name, ids), 11)
        asked.ask("elsewhere", produced(asked, name, ids, index=1), 11)
        asked.ask("an open transaction's", read(asked))
        for committed in (True, True, False):
            label = f"committed {committed}"
            end_until_done(asked, label, ended(name, ids, committed=committed), version)
        asked.call(added(name, ids, ("a", [0])), 3)
        asked.call(produced(asked, name, ids, 1), 11)
        for committed in (False, False, True):
            label = f"committed {committed} after it"
            end_until_done(asked, label, ended(name, ids, committed=committed), version)


def todays_protocol(asked: Questioner) -> None:
    name = "of-today"
    ids = started(asked, name)
    asked.ask("without a name", produced(asked, None, ids), IMPLICIT)
    asked.ask("with another's name", produced(asked, "unknown", ids), IMPLICIT)
    asked.ask("of the epoch before", produced(asked, name, (ids[0], ids[1] - 1)), IMPLICIT)
    asked.ask("implicitly", produced(asked, name, ids), IMPLICIT)
    asked.ask("by id", produced(asked, name, ids, index=1), 13)
    asked.ask("an open one", DescribeTransactionsRequest(transactional_ids=[name]))
    asked.ask("an open one's", read(asked))
    asked.ask("an open one's end", end_of(COMMITTED))
    asked.ask("its producers", DescribeProducersRequest(topics=[one("a", [0, 1])]))
    first = end_until_done(asked, "commits", ended(name, ids), OF_TODAY)
    asked.ask("commits again", ended(name, ids), OF_TODAY)
    asked.ask("aborts what is committed", ended(name, ids, committed=False), OF_TODAY)
    asked.ask("of the old epoch", produced(asked, name, ids, 1), IMPLICIT)
    now = (first.producer_id, first.producer_epoch)
    asked.ask("of the new epoch", produced(asked, name, now, 5), IMPLICIT)
    asked.ask("of the new epoch, from 0", produced(asked, name, now), IMPLICIT)
    asked.ask("from the old epoch", ended(name, ids), OF_TODAY)
    second = end_until_done(asked, "aborts", ended(name, now, committed=False), OF_TODAY)
    asked.ask("aborts again", ended(name, now, committed=False), OF_TODAY)
    asked.ask("the aborted", read(asked))
    now = (second.producer_id, second.producer_epoch)
    third = end_until_done(asked, "aborts nothing", ended(name, now, committed=False), OF_TODAY)
    now = (third.producer_id, third.producer_epoch)
    asked.ask("commits nothing", ended(name, now), OF_TODAY)
    asked.ask("completed", DescribeTransactionsRequest(transactional_ids=[name]))
    asked.ask("completed's end", end_of(COMMITTED))


def offset_commit(name: str, ids: Ids, group: str, asked: Questioner, **fields: Any) -> Any:
    places = fields.pop("places", {"a": {0: 42}})
    metadata = fields.pop("metadata", "in a transaction")
    topics = [
        TxnOffsetCommitRequestTopic(
            name=topic,
            topic_id=asked.topics.get(topic, bytes(16)),
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
                for index, offset in offsets.items()
            ],
        )
        for topic, offsets in places.items()
    ]
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=ids[0],
        producer_epoch=ids[1],
        topics=topics,
        **fields,
    )


def offsets(asked: Questioner) -> None:
    name, group = "offsets", "txn-group"
    member_id = stable(asked, group)
    ids = started(asked, name)
    wrong_epoch = (ids[0], ids[1] - 1)
    for version in asked.all_versions(AddOffsetsToTxnRequest):
        for label, who, whose, where in (
            ("no name", "", ids, group),
            ("an unknown name", "unknown", ids, group),
            ("a stranger", name, STRANGER, group),
            ("the epoch before", name, wrong_epoch, group),
            ("no group", name, ids, ""),
        ):
            request = AddOffsetsToTxnRequest(
                transactional_id=who, producer_id=whose[0], producer_epoch=whose[1], group_id=where
            )
            asked.ask(label, request, version)
    request = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=ids[0], producer_epoch=ids[1], group_id=group
    )
    asked.ask("a group", request)
    for version in asked.all_versions(TxnOffsetCommitRequest):
        member = {"member_id": member_id, "generation_id_or_member_epoch": 1} if version > 2 else {}

        def put(label: str, who: Ids = ids, where: str = group, **fields: Any) -> None:
            fields = {**member, **fields}  # noqa: B023
            asked.ask(label, offset_commit(name, who, where, asked, **fields), version)  # noqa: B023

        put("offsets", places={"a": {0: version}})
        put("too much metadata", metadata="x" * 101)
        put("no partition", places={"a": {9: 1}})
        put("no topic", places={"nope": {0: 1}, "a": {1: version}})
        put("nothing", places={})
        put("the epoch before", wrong_epoch)
        put("no group", where="")
        put("another group", where="another-group")
        if version > 2:
            put("another generation", generation_id_or_member_epoch=0)
            put("nobody", member_id=NOBODY)
            put("without a member", member_id="", generation_id_or_member_epoch=-1)
            put("a static stranger", group_instance_id="one")
    wish = of_group(group, {"a": [0, 1]}, asked.topics)
    asked.ask("pending", OffsetFetchRequest(groups=[wish]))
    asked.ask("stable", OffsetFetchRequest(groups=[wish], require_stable=True))
    everything = OffsetFetchRequest(groups=[of_group(group, None)], require_stable=True)
    asked.ask("all that is stable", everything)
    done = end_until_done(asked, "offsets", ended(name, ids), OF_TODAY)
    asked.ask_until(
        "committed",
        OffsetFetchRequest(groups=[wish], require_stable=True),
        lambda answer: not answer.groups[0].topics[0].partitions[0].error_code,
    )
    now = (done.producer_id, done.producer_epoch)
    asked.ask("implicitly", offset_commit(name, now, "txn-group-2", asked))
    end_until_done(asked, "aborts offsets", ended(name, now, committed=False), OF_TODAY)
    wish = of_group("txn-group-2", {"a": [0]}, asked.topics)
    asked.ask_until(
        "aborted",
        OffsetFetchRequest(groups=[wish], require_stable=True),
        lambda answer: not answer.groups[0].topics[0].partitions[0].error_code,
    )


def bump_under_way(asked: Questioner) -> None:
    """A new producer of the same name ends what the one before left open."""
    name = "left-open"
    ids = started(asked, name)
    asked.call(produced(asked, name, ids), IMPLICIT)
    answer = asked.ask_until(
        "after one that was left", initial(name), lambda a: a.error_code != CONCURRENT_TRANSACTIONS
    )
    asked.ask("fenced", produced(asked, name, ids, 1), IMPLICIT)
    for version in (1, 2, 4, OF_TODAY):
        asked.ask("fenced", ended(name, ids), version)
    asked.ask("fenced", added(name, ids, ("a", [0])), 1)
    asked.ask("fenced", added(name, ids, ("a", [0])), 3)
    asked.ask("after it", read(asked))
    asked.ask("nothing yet", ended(name, (answer.producer_id, answer.producer_epoch)), 4)


def describe(asked: Questioner) -> None:
    names = ["of-today", "unknown", "", "left-open"]
    asked.ask("some", DescribeTransactionsRequest(transactional_ids=names))
    asked.ask("none", DescribeTransactionsRequest(transactional_ids=[]))
    asked.ask("one twice", DescribeTransactionsRequest(transactional_ids=["left-open"] * 2))
    ids = started(asked, "open-one")
    asked.call(produced(asked, "open-one", ids), IMPLICIT)
    asked.ask_all("all", ListTransactionsRequest())
    for states in (["Ongoing"], ["ongoing"], ["Empty", "nope"], ["CompleteCommit"], ["nope"], [""]):
        asked.ask(f"states {states}", ListTransactionsRequest(state_filters=states))
    mine = ListTransactionsRequest(producer_id_filters=[ids[0]])
    asked.ask("of a producer", mine)
    asked.ask("of nobody", ListTransactionsRequest(producer_id_filters=[STRANGER[0]]))
    for duration_ms in (0, 3_600_000, -2):
        request = ListTransactionsRequest(duration_filter=duration_ms)
        asked.ask(f"for {duration_ms} ms", request)
    for pattern in ("open-.*", "open", "", "(", "(?=o)", "ended-[12]|adding"):
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        asked.ask(f"like {pattern}", request)
    end_until_done(asked, "the open one", ended("open-one", ids), OF_TODAY)


def verify(asked: Questioner) -> None:
    """Versions 4 and 5 are the brokers' own, several transactions at once."""
    ids = started(asked, "verified")
    asked.call(added("verified", ids, ("a", [0])), 3)

    def ask_for(label: str, *rows: tuple[str, Ids, list[int]], only: bool) -> None:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=who[0],
                producer_epoch=who[1],
                verify_only=only,
                topics=[AddPartitionsToTxnTopic(name="a", partitions=partitions)],
            )
            for name, who, partitions in rows
        ]
        asked.ask_all(label, AddPartitionsToTxnRequest(transactions=transactions))

    for only in (True, False):
        ask_for(f"an unknown name, {only}", ("unknown", ids, [0]), only=only)
        ask_for(f"a stranger, {only}", ("verified", STRANGER, [0]), only=only)
        ask_for(f"no partition, {only}", ("verified", ids, [9]), only=only)
        ask_for(f"no name, {only}", ("", ids, [0]), only=only)
    ask_for("what is there", ("verified", ids, [0]), only=True)
    ask_for("what is not", ("verified", ids, [0, 1]), ("unknown", ids, [0]), only=True)
    ask_for("one more", ("verified", ids, [1]), only=False)
    end_until_done(asked, "the verified", ended("verified", ids), 4)


def markers(asked: Questioner) -> None:
    """What brokers tell each other, and what ends a transaction that hangs."""
    ids = started(asked, "marked")
    asked.call(produced(asked, "marked", ids, topic="b"), IMPLICIT)

    def put(label: str, who: Ids, topic: str, indexes: list[int], epoch: int = 0) -> None:
        place = WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
        marker = WritableTxnMarker(
            producer_id=who[0],
            producer_epoch=who[1],
            transaction_result=False,
            topics=[place],
            coordinator_epoch=epoch,
        )
        asked.ask(label, WriteTxnMarkersRequest(markers=[marker]))

    put("no topic", ids, "nope", [0])
    put("no partition", ids, "b", [9])
    put("the epoch before", (ids[0], ids[1] - 1), "b", [0])
    put("a stranger", STRANGER, "b", [0])
    put("the open one", ids, "b", [0])
    put("again", ids, "b", [0])
    put("by an old coordinator", ids, "b", [0], -1)
    asked.ask("after markers", DescribeProducersRequest(topics=[one("b", [0])]))
    asked.ask("no markers", WriteTxnMarkersRequest(markers=[]))
    end_until_done(asked, "the marked", ended("marked", ids), OF_TODAY)


def timeout(asked: Questioner) -> None:
    """A transaction that is left open is aborted, and its producer fenced."""
    name = "timed-out"
    answer = asked.call(initial(name, transaction_timeout_ms=100))
    ids = (answer.producer_id, answer.producer_epoch)
    asked.call(produced(asked, name, ids), IMPLICIT)
    asked.ask_until(
        "timed out",
        DescribeTransactionsRequest(transactional_ids=[name]),
        lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",
    )
    asked.ask("timed out", ended(name, ids), OF_TODAY)
    asked.ask("timed out", ended(name, ids), 4)
    asked.ask("timed out", produced(asked, name, ids, 1), IMPLICIT)
    known = {"producer_id": ids[0], "producer_epoch": ids[1]}
    asked.ask("timed out", initial(name, **known))


def one(topic: str, indexes: list[int]) -> TopicRequest:
    return TopicRequest(name=topic, partition_indexes=indexes)


def read(asked: Questioner) -> FetchRequest:
    """Ask for both partitions of `a`, read committed."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in (0, 1)
    ]
    topics = [FetchTopic(topic_id=asked.topics["a"], partitions=partitions)]
    return FetchRequest(
        max_wait_ms=0, min_bytes=0, session_epoch=-1, isolation_level=COMMITTED, topics=topics
    )


def end_of(isolation: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1)]
    topics = [ListOffsetsTopic(name="a", partitions=partitions)]
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)
