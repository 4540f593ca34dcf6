"""A cluster of one broker to decide for: what is decided is encoded, decoded and replayed."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from moldau.controller.cluster import ControllerSettings, InternalTopic
from moldau.controller.commands import (
    Activate,
    BrokerHeartbeat,
    CreateTopics,
    RegisterBroker,
)
from moldau.controller.controller import Controller
from moldau.coordination.command import Command
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.metadata.batches import encode_records, in_batches
from moldau.metadata.bootstrap import bootstrap_records
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.features import LATEST_LEVEL, SUPPORTED
from moldau.metadata.image import ClusterImage
from moldau.metadata.record_frame import decode_record
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from moldau.protocol.schema import Message

CLUSTER_ID = "MoldauMoldauMoldauMol0"
NOW = Instant(monotonic=5.0, wall_ms=1_700_000_000_000)

AnyAnswer = TypeVar("AnyAnswer", bound=Message | None)

DEFAULTS = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "1",
    "retention.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


class Rules:
    """Four topic configs; retention.ms is a number; all else is free for brokers and groups."""

    def check(
        self, resource: Resource, values: Mapping[str, str], _previous: Mapping[str, str]
    ) -> None:
        if resource.type != ResourceType.TOPIC:
            return
        for name, value in values.items():
            if name not in DEFAULTS:
                raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
            if name == "retention.ms" and not value.lstrip("-").isdigit():
                raise Refusal(ErrorCode.INVALID_CONFIG, f"{name} must be a number, not {value}")

    def is_list(self, _type: int, name: str) -> bool:
        return name == "cleanup.policy"

    def default(self, _type: int, name: str) -> str | None:
        return DEFAULTS.get(name)

    def describe_topic(self, values: Mapping[str, str]) -> Sequence[CreatableTopicConfigs]:
        shown = DEFAULTS | dict(values)
        return [CreatableTopicConfigs(name=name, value=shown[name]) for name in sorted(shown)]


class TestCluster:
    """A controller with its log; offsets count records as the log would."""

    __test__ = False

    def __init__(
        self,
        *,
        level: int = LATEST_LEVEL,
        brokers: Sequence[int] = (1,),
        records_max: int = 1000,
        first_offset: int = 0,
    ) -> None:
        settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            node_id=1,
            num_partitions=3,
            internal_topics={
                "__consumer_offsets": InternalTopic(
                    50, 3, {"cleanup.policy": "compact", "min.insync.replicas": "2"}
                )
            },
        )
        self.controller = Controller(ClusterImage(), settings, Rules())
        self.batches: list[list[Message]] = []
        self.first_offset = first_offset
        self.records_max = records_max
        self.perform(Activate(bootstrap_records(level)))
        for broker_id in brokers:
            self.register(broker_id)
            self.unfence(broker_id)

    @property
    def log(self) -> list[Message]:
        """All records, in their order."""
        return [record for batch in self.batches for record in batch]

    @property
    def next_offset(self) -> int:
        return self.first_offset + sum(map(len, self.batches))

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def perform(self, command: Command[AnyAnswer]) -> AnyAnswer:
        """Decide, append, replay; return the answer."""
        decision = self.controller.decide(command, NOW)
        level = self.image.level
        for batch in in_batches(decision.records, level, records_max=self.records_max):
            written = [decode_record(value) for value in encode_records(batch, level)]
            self.batches.append(written)
            for record in written:
                self.controller.replay(record)
        return decision.response

    def register(
        self,
        broker_id: int,
        *,
        incarnation: bytes = b"i",
        previous_epoch: int = -1,
        log_dirs: Sequence[bytes] = (),
    ) -> int:
        """Register a broker, with one directory of its own unless others are named; return its
        epoch.
        """
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation.ljust(16),
            listeners=[Listener(name="PLAINTEXT", host="localhost", port=9092)],
            features=[
                Feature(
                    name=name,
                    min_supported_version=levels.lowest,
                    max_supported_version=levels.highest,
                )
                for name, levels in SUPPORTED.items()
            ],
            log_dirs=log_dirs or [directory_of(broker_id)],
            previous_broker_epoch=previous_epoch,
        )
        answer = self.perform(RegisterBroker(request, next_offset=self.next_offset))
        assert answer.error_code == 0
        return answer.broker_epoch

    def heartbeat(self, broker_id: int, **wishes: object) -> tuple[bool, bool]:
        """Return whether the broker is fenced, and whether it should shut down."""
        broker = self.image.brokers.find(broker_id)
        assert broker is not None
        answer = self.perform(
            BrokerHeartbeat(
                BrokerHeartbeatRequest(
                    broker_id=broker_id,
                    broker_epoch=broker.broker_epoch,
                    current_metadata_offset=self.next_offset,
                    **wishes,
                )
            )
        )
        assert answer.error_code == 0
        return answer.is_fenced, answer.should_shut_down

    def unfence(self, broker_id: int) -> None:
        assert self.heartbeat(broker_id) == (False, False)

    def create(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        *,
        assignments: Mapping[int, Sequence[int]] | Sequence[tuple[int, Sequence[int]]] = (),
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> CreatableTopicResult:
        """Create one topic; return its answer."""
        pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in pairs
            ],
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
        entropy = self.next_offset.to_bytes(16)
        [result] = self.perform(CreateTopics(request, entropy)).topics
        return result


def directory_of(broker_id: int) -> bytes:
    """Return the id of a broker's only directory."""
    return bytes([0xD0, *bytes(14), broker_id])
