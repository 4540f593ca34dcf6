"""Apache Kafka's own image agrees with ours on what records add up to."""

import random
from collections.abc import Iterable
from pathlib import Path

from moldau.metadata.batches import encode_records
from moldau.metadata.image import ClusterImage
from moldau.metadata.record_frame import decode_record
from moldau.protocol.schema import Message, Struct
from moldau.protocol.stored.cluster_metadata import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
)
from tests.conformance.jars import run_java
from tests.unit.controller.cluster import TestCluster
from tests.unit.controller.test_configs import CLICKS, DELETE, SET, change
from tests.unit.controller.test_features import SAFE, update
from tests.unit.controller.test_topics import add_partitions, elect, reassign

LEVEL = 30  # the highest of Apache Kafka 4.3.1


def busy_cluster(seed: int) -> TestCluster:
    """Return a cluster on which much has happened, differently for every seed."""
    chance = random.Random(seed)
    cluster = TestCluster(level=LEVEL, brokers=[1, 2, 3])
    names = ["clicks", "views", "web.clicks"]
    for step in range(80):
        broker = chance.choice([1, 2, 3])
        name = chance.choice(names)
        match chance.randrange(9):
            case 0 | 1:
                configs = {"retention.ms": str(step), "min.insync.replicas": "2"}
                cluster.create(name, chance.randint(1, 4), chance.randint(1, 3), configs=configs)
            case 2:
                add_partitions(cluster, name, chance.randint(1, 8))
            case 3:
                previous = cluster.image.brokers.by_id[broker].broker_epoch
                epoch = chance.choice([-1, previous])
                cluster.register(broker, incarnation=b"%d" % step, previous_epoch=epoch)
            case 4:
                cluster.heartbeat(broker)
            case 5:
                cluster.heartbeat(broker, want_shut_down=chance.random() < 0.5, want_fence=True)
            case 6:
                replicas = chance.sample([1, 2, 3], chance.randint(1, 3))
                reassign(cluster, name, 0, chance.choice([None, replicas]))
            case 7:
                elect(cluster, chance.randrange(2), None)
            case 8:
                change(cluster, CLICKS, ("min.insync.replicas", SET, chance.choice("12")))
                change(cluster, CLICKS, ("retention.ms", DELETE, None))
    update(cluster, ("share.version", 0, SAFE), ("transaction.version", 1, SAFE))
    return cluster


def kept_records() -> list[Message]:
    """Return records of what later issues bring, which have to be kept unharmed."""
    entity = [
        EntityData(entity_type="user", entity_name="ann"),
        EntityData(entity_type="client-id", entity_name=None),
    ]
    entry = AccessControlEntryRecord(
        id=bytes(range(16)),
        resource_type=2,
        resource_name="clicks",
        pattern_type=3,
        principal="User:ann",
        host="*",
        operation=3,
        permission_type=3,
    )
    gone = AccessControlEntryRecord(
        id=bytes(range(1, 17)),
        resource_type=2,
        resource_name="views",
        pattern_type=3,
        principal="User:bob",
        host="*",
        operation=4,
        permission_type=2,
    )
    return [
        ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1000.0),
        ClientQuotaRecord(entity=entity, key="consumer_byte_rate", value=1.0),
        ClientQuotaRecord(entity=entity[::-1], key="consumer_byte_rate", value=2.5),
        ClientQuotaRecord(entity=entity[:1], key="request_percentage", value=1.0),
        ClientQuotaRecord(entity=entity[:1], key="request_percentage", remove=True),
        entry,
        gone,
        RemoveAccessControlEntryRecord(id=gone.id),
        UserScramCredentialRecord(
            name="ann",
            mechanism=1,
            salt=b"salt",
            stored_key=b"stored",
            server_key=b"server",
            iterations=4096,
        ),
        DelegationTokenRecord(
            owner="User:ann",
            requester="User:ann",
            renewers=["User:bob"],
            issue_timestamp=1,
            max_timestamp=3,
            expiration_timestamp=2,
            token_id="token",
        ),
    ]


def test_both_images_are_the_same(tmp_path: Path) -> None:
    for seed in range(4):
        cluster = busy_cluster(seed)
        history = [*cluster.log, *kept_records()]
        ours = ClusterImage()
        for record in history:
            ours.replay(record)
        # Kafka's loader resolves transactions before its image sees them.
        plain = [
            record
            for record in history
            if not isinstance(record, BeginTransactionRecord | EndTransactionRecord)
        ]
        theirs = kafka_snapshot(tmp_path, encode_records(plain, LEVEL))
        assert len(theirs) > 20
        assert canonical(theirs) == canonical(ours.records())
        # And what we would write as a snapshot is the same to Kafka as the whole history.
        again = kafka_snapshot(tmp_path, encode_records(ours.records(), LEVEL))
        assert canonical(again) == canonical(theirs)


def kafka_snapshot(folder: Path, values: list[bytes]) -> list[Message]:
    """Let Kafka replay records; return those of its snapshot."""
    given, written = folder / "given", folder / "written"
    given.write_bytes(b"".join(len(value).to_bytes(4) + value for value in values))
    done = run_java(folder, "ImageOracle", str(given), str(written))
    assert done.returncode == 0, done.stderr
    data = written.read_bytes()
    records = []
    while data:
        size = int.from_bytes(data[:4])
        records.append(decode_record(data[4 : 4 + size]))
        data = data[4 + size :]
    return records


def canonical(records: Iterable[Message]) -> list[str]:
    """Return a text for every record, sorted: images have no order."""
    return sorted(_text(record) for record in records)


def _text(value: object) -> str:
    if isinstance(value, Struct):
        fields = {field.name: _text(getattr(value, field.name)) for field in value._fields}
        return f"{type(value).__name__}({fields})"
    if isinstance(value, list | tuple):
        texts = [_text(each) for each in value]
        if value and isinstance(value[0], Struct):
            texts.sort()
        return str(texts)
    # No cordoned directories are none, written down or not.
    return "[]" if value is None else repr(value)
