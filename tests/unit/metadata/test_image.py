import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.metadata.brokers import UNFENCE
from moldau.metadata.errors import ReplayError, UnsupportedLevelError
from moldau.metadata.image import ClusterImage
from moldau.metadata.topics import MIGRATING
from moldau.protocol.schema import Field, Message
from moldau.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tests.strategies import SETTINGS, structs

TOPIC = bytes(range(16))
LATEST = FeatureLevelRecord(name="metadata.version", feature_level=33)


def image_of(*records: Message) -> ClusterImage:
    image = ClusterImage()
    for record in records:
        image.replay(record)
    return image


def clicks(**fields: object) -> list[Message]:
    values: dict[str, object] = {"replicas": [1], "isr": [1], "leader": 1}
    return [
        LATEST,
        TopicRecord(name="clicks", topic_id=TOPIC),
        PartitionRecord(
            partition_id=0, topic_id=TOPIC, leader_epoch=0, partition_epoch=0, **(values | fields)
        ),
    ]


def test_an_empty_image() -> None:
    image = ClusterImage()
    assert image.is_empty
    assert image.level == 7
    assert image_of(LATEST).is_empty is False


def test_partition_changes() -> None:
    image = image_of(*clicks())
    topic = image.topics.find("clicks")
    assert topic is not None
    before = topic.partitions[0]
    # Logs from before directories name none.
    assert before.directories == (MIGRATING,)
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[], leader=-1))
    gone = topic.partitions[0]
    assert (gone.isr, gone.leader, gone.leader_epoch, gone.partition_epoch) == ((), -1, 1, 1)
    image.replay(
        PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
            leader_recovery_state=1,
        )
    )
    after = topic.partitions[0]
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (-1, 1, 2)
    assert (after.eligible_leaders, after.last_known_leaders) == ((1,), (1,))
    assert after.leader_recovery_state == 1
    image.replay(ClearElrRecord(topic_name="clicks"))
    image.replay(ClearElrRecord())
    cleared = topic.partitions[0]
    assert (cleared.eligible_leaders, cleared.last_known_leaders) == ((), ())
    assert cleared.partition_epoch == 3
    assert before.isr == (1,), "partitions that readers hold do not change"


def test_removed_topics_take_their_configs_along() -> None:
    config = ConfigRecord(resource_type=2, resource_name="clicks", name="a", value="1")
    image = image_of(*clicks(), config, RemoveTopicRecord(topic_id=TOPIC))
    assert list(image.records()) == [LATEST]
    assert image.topics.find_by_id(TOPIC) is None
    assert image.topics.partition_count == 0


def test_brokers() -> None:
    image = image_of(
        RegisterBrokerRecord(broker_id=1, broker_epoch=7, rack=None),
        RegisterBrokerRecord(broker_id=2, broker_epoch=8, rack="r"),
        UnfenceBrokerRecord(id=1, epoch=7),
    )
    assert image.brokers.is_active(1)
    assert not image.brokers.is_active(2)
    image.replay(FenceBrokerRecord(id=1, epoch=7))
    assert not image.brokers.is_active(1)
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=UNFENCE))
    assert image.brokers.is_active(1)
    change = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=7, in_controlled_shutdown=1, log_dirs=[TOPIC]
    )
    change.cordoned_log_dirs = [TOPIC]
    image.replay(change)
    broker = image.brokers.find(1)
    assert broker is not None
    assert not image.brokers.is_active(1)
    assert not broker.fenced
    assert (broker.log_dirs, broker.cordoned_log_dirs) == ((TOPIC,), (TOPIC,))
    image.replay(UnregisterBrokerRecord(broker_id=2, broker_epoch=8))
    assert list(image.brokers.by_id) == [1]


@pytest.mark.parametrize(
    "record",
    [
        PartitionRecord(topic_id=TOPIC),
        PartitionChangeRecord(topic_id=TOPIC),
        RemoveTopicRecord(topic_id=TOPIC),
        ClearElrRecord(topic_name="missing"),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        FenceBrokerRecord(id=1, epoch=1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1),
        EndTransactionRecord(),
        AbortTransactionRecord(),
        FeatureLevelRecord(name="metadata.version", feature_level=34),
        FeatureLevelRecord(name="metadata.version", feature_level=6),
        FeatureLevelRecord(name="no.such.version", feature_level=1),
    ],
)
def test_what_does_not_fit(record: Message) -> None:
    with pytest.raises(ReplayError):
        ClusterImage().replay(record)


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="clicks", topic_id=bytes(16)),
        TopicRecord(name="other", topic_id=TOPIC),
        PartitionRecord(partition_id=1, topic_id=TOPIC, replicas=[1, 2], directories=[TOPIC]),
        PartitionChangeRecord(partition_id=9, topic_id=TOPIC),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, replicas=[1, 2]),
    ],
)
def test_what_does_not_fit_a_topic(record: Message) -> None:
    image = image_of(*clicks(directories=[TOPIC]))
    with pytest.raises(ReplayError):
        image.replay(record)


def test_a_level_beyond_ours_is_refused_in_one_line() -> None:
    with pytest.raises(UnsupportedLevelError) as caught:
        image_of(FeatureLevelRecord(name="metadata.version", feature_level=40))
    assert str(caught.value).count("\n") == 0
    assert "metadata.version is 40" in str(caught.value)


def test_transactions_show_when_they_end() -> None:
    image = image_of(LATEST, BeginTransactionRecord(), *clicks()[1:])
    assert image.is_in_transaction
    assert len(image.topics) == 0
    with pytest.raises(ReplayError):
        image.replay(BeginTransactionRecord())
    image.replay(EndTransactionRecord())
    assert not image.is_in_transaction
    assert len(image.topics) == 1
    image.replay(BeginTransactionRecord())
    image.replay(RemoveTopicRecord(topic_id=TOPIC))
    image.replay(AbortTransactionRecord())
    assert len(image.topics) == 1


def test_a_copy_stays_as_it_is() -> None:
    image = image_of(*clicks(), ConfigRecord(resource_type=2, resource_name="clicks", value="1"))
    copied = image.copy()
    before = list(image.records())
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=-1))
    image.replay(ConfigRecord(resource_type=2, resource_name="clicks", value=None))
    image.replay(RegisterBrokerRecord(broker_id=1))
    image.replay(ProducerIdsRecord(next_producer_id=5))
    assert list(copied.records()) == before
    assert list(image.records()) != before


KEPT = (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    ClientQuotaRecord,
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    ConfigRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
)


def few_keys(field: Field) -> st.SearchStrategy[object] | None:
    """Let records meet: few names and ids, so that they replace and remove each other."""
    match field.name, field.type.name if hasattr(field.type, "name") else "":
        case "entity", _:
            part = st.builds(
                EntityData,
                entity_type=st.sampled_from(["user", "client-id"]),
                entity_name=st.sampled_from(["a", None]),
            )
            return st.lists(part, min_size=1, max_size=2, unique_by=lambda each: each.entity_type)
        case "next_producer_id", _:
            return st.integers(0, 2**62)
        case _, "uuid":
            return st.sampled_from([bytes(16), TOPIC])
        case _, "string":
            return st.sampled_from(["a", "b"])
        case (("broker_id" | "controller_id" | "mechanism" | "resource_type"), _):
            return st.integers(1, 2)
        case _:
            return None


def kept_records() -> st.SearchStrategy[list[Message]]:
    return st.lists(
        st.one_of([structs(cls, cls._versions[1], few_keys) for cls in KEPT]), max_size=30
    )


@SETTINGS
@given(kept_records(), kept_records())
def test_snapshot_and_suffix_make_the_whole(prefix: list[Message], suffix: list[Message]) -> None:
    whole = image_of(LATEST, *prefix, *suffix)
    loaded = image_of(*image_of(LATEST, *prefix).records(), *suffix)
    assert list(loaded.records()) == list(whole.records())


def test_quotas_are_told_apart_by_what_they_name_not_by_its_order() -> None:
    parts = [
        EntityData(entity_type="user", entity_name="a"),
        EntityData(entity_type="client-id", entity_name=None),
    ]
    image = image_of(
        LATEST,
        ClientQuotaRecord(entity=parts, key="rate", value=1.0),
        ClientQuotaRecord(entity=parts[::-1], key="rate", value=2.0),
        ClientQuotaRecord(entity=parts[:1], key="rate", value=3.0),
    )
    assert [record.value for record in image.kept.records(ClientQuotaRecord)] == [2.0, 3.0]
    image.replay(ClientQuotaRecord(entity=parts, key="rate", remove=True))
    assert [record.value for record in image.kept.records(ClientQuotaRecord)] == [3.0]
