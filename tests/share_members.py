"""A member of a share group that says exactly what a test wants it to say."""

import secrets
from collections.abc import Iterable, Sequence

from moldau._native.records import Record, read_batches
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import share_acknowledge as acknowledging
from moldau.protocol.messages import share_fetch as fetching
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.records.batch import read_records
from tests.wire import Wire, wait_for

GROUP_RESOURCE = 32
PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

Said = Sequence[tuple[int, int, Sequence[int]]]
"""First and last offset, and the types of acknowledgement."""


def configure(wire: Wire, group: str, **configs: str) -> None:
    """Set a group's own configs."""
    rows = [
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=rows)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [answer] = wire.call(request, IncrementalAlterConfigsResponse, 1).responses
    assert answer.error_code == 0, answer.error_message


def topic_id_of(wire: Wire, topic: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    [found] = wire.call(request, MetadataResponse, 12).topics
    return bytes(found.topic_id)


class ShareMember:
    """One member, with a connection of its own."""

    def __init__(self, host: str, port: int, group: str, *topics: str) -> None:
        self.wire = Wire(host, port)
        self.group = group
        self.topics = topics
        self.member_id = secrets.token_urlsafe(16)
        self.epoch = 0
        self.session_epoch = 0
        self.topic_ids = {name: topic_id_of(self.wire, name) for name in topics}

    def close(self) -> None:
        self.wire.close()

    # Membership.

    def find_coordinator(self) -> None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])

        def is_found() -> bool:
            answer = self.wire.call(request, FindCoordinatorResponse, 6)
            return answer.coordinators[0].error_code == 0

        wait_for(is_found)

    def heartbeat(
        self, epoch: int, topics: Sequence[str] | None = None
    ) -> ShareGroupHeartbeatResponse:
        """Heartbeat once the coordinator has loaded."""
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=topics,
        )
        answers: list[ShareGroupHeartbeatResponse] = []

        def is_answered() -> bool:
            answers.append(self.wire.call(request, ShareGroupHeartbeatResponse, 1))
            return answers[-1].error_code not in PASSING

        wait_for(is_answered)
        return answers[-1]

    def join(self) -> dict[bytes, list[int]]:
        """Join, and return what is assigned as soon as something is."""
        self.find_coordinator()
        assigned: dict[bytes, list[int]] = {}

        def is_assigned() -> bool:
            answer = self.heartbeat(self.epoch, None if self.epoch else self.topics)
            assert answer.error_code == 0, answer
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                for each in answer.assignment.topic_partitions:
                    assigned[bytes(each.topic_id)] = list(each.partitions)
            return bool(assigned)

        wait_for(is_assigned)
        return assigned

    # Records.

    def fetch_request(
        self,
        topic: str | None = None,
        partitions: Iterable[int] = (0,),
        *,
        epoch: int | None = None,
        said: Said = (),
        records_max: int = 500,
        wait_ms: int = 500,
        is_strict: bool = False,
    ) -> fetching.ShareFetchRequest:
        session_epoch = self.session_epoch if epoch is None else epoch
        named = topic or (self.topics[0] if session_epoch == 0 or said else None)
        wanted = [
            fetching.FetchTopic(
                topic_id=self.topic_ids[named],
                partitions=[
                    fetching.FetchPartition(
                        partition_index=index,
                        acknowledgement_batches=[
                            fetching.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=types
                            )
                            for first, last, types in said
                        ],
                    )
                    for index in partitions
                ],
            )
            for named in ([] if named is None else [named])
        ]
        return fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=session_epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=records_max,
            batch_size=records_max,
            share_acquire_mode=int(is_strict),
            topics=wanted,
        )

    def fetch(self, *arguments: object, **options: object) -> fetching.ShareFetchResponse:
        """Fetch, and go on in the session if that is right."""
        request = self.fetch_request(*arguments, **options)  # type: ignore[arg-type]
        answer = self.wire.call(request, fetching.ShareFetchResponse, 2)
        if answer.error_code == 0 and request.share_session_epoch >= 0:
            self.session_epoch = request.share_session_epoch + 1
        return answer

    def acquire(self, **options: object) -> list[tuple[int, int, int]]:
        """Fetch until something is acquired."""
        acquired: list[tuple[int, int, int]] = []

        def is_acquired() -> bool:
            answer = self.fetch(**options)
            assert answer.error_code == 0, answer
            for topic in answer.responses:
                for row in topic.partitions:
                    assert row.error_code == 0, row
                    acquired.extend(acquired_of(row))
            return bool(acquired)

        wait_for(is_acquired)
        return acquired

    def acknowledge(
        self, said: Said, *, epoch: int | None = None, version: int = 2, is_renewal: bool = False
    ) -> acknowledging.ShareAcknowledgeResponse:
        """Acknowledge records of the first partition of the first topic."""
        partition = acknowledging.AcknowledgePartition(
            partition_index=0,
            acknowledgement_batches=[
                acknowledging.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=types
                )
                for first, last, types in said
            ],
        )
        topic = acknowledging.AcknowledgeTopic(
            topic_id=self.topic_ids[self.topics[0]], partitions=[partition]
        )
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            is_renew_ack=is_renewal,
            topics=[topic],
        )
        answer = self.wire.call(request, acknowledging.ShareAcknowledgeResponse, version)
        if answer.error_code == 0 and request.share_session_epoch > 0:
            self.session_epoch += 1
        return answer

    def outcome(self, said: Said, **options: object) -> int:
        """Acknowledge, and return the partition's error code."""
        answer = self.acknowledge(said, **options)  # type: ignore[arg-type]
        assert answer.error_code == 0, answer
        return answer.responses[0].partitions[0].error_code


def acquired_of(row: fetching.PartitionData) -> list[tuple[int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records
    ]


def records_of(row: fetching.PartitionData) -> list[Record]:
    """Return the records that were acquired, as a client hands them out."""
    data = bytes(row.records or b"")
    return [
        record
        for batch in read_batches(data)
        if not batch.is_control
        for record in read_records(data, batch)
        if any(first <= record.offset <= last for first, last, _ in acquired_of(row))
    ]
