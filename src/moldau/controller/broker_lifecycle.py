"""Brokers come, catch up, serve, shut down and leave; their partitions follow."""

from collections.abc import Callable, Iterator
from itertools import chain

from moldau.controller.cluster import ControlledCluster
from moldau.controller.commands import RegisterBroker
from moldau.controller.decision import MetadataDecision
from moldau.controller.partition_change import Electable, PartitionWish, change_partition
from moldau.coordination.refusal import Refusal
from moldau.metadata.brokers import FENCE, SHUT_DOWN, UNFENCE
from moldau.metadata.features import CORDONED_DIRECTORIES, DIRECTORIES, METADATA_VERSION
from moldau.metadata.topics import NO_LEADER, Partition, Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from moldau.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from moldau.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)


def decide_register_broker(
    cluster: ControlledCluster, command: RegisterBroker
) -> MetadataDecision[BrokerRegistrationResponse]:
    """Register a broker, fenced until it has caught up.

    A new incarnation of a broker that was not fenced takes over at once. Unless it shut down
    cleanly, which it shows by knowing its last epoch, it may have lost what it had.
    """
    request = command.request
    try:
        _check_registration(cluster, request)
    except Refusal as refusal:
        return MetadataDecision((), BrokerRegistrationResponse(error_code=refusal.code))
    existing = cluster.image.brokers.find(request.broker_id)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=command.next_offset,
        end_points=[
            BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in request.listeners
        ],
        features=[
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
    )
    if cluster.image.level >= DIRECTORIES:
        record.log_dirs = request.log_dirs
    changes: Iterator[Message] = iter(())
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.broker_epoch = existing.broker_epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        record.cordoned_log_dirs = existing.cordoned_log_dirs
    elif existing is not None:
        is_clean = request.previous_broker_epoch == existing.broker_epoch
        if not (is_clean and existing.fenced):
            changes = _leave(cluster, request.broker_id, is_lost=not is_clean)
    response = BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return MetadataDecision(chain(changes, [record]), response)


def _check_registration(cluster: ControlledCluster, request: BrokerRegistrationRequest) -> None:
    if request.cluster_id != cluster.settings.cluster_id:
        raise Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, None)
    supported = {feature.name: feature for feature in request.features}
    for name, level in cluster.image.levels.items():
        feature = supported.get(name)
        if feature is None:
            # Who does not name metadata.version would know none of its levels.
            fits = level == 0 and name != METADATA_VERSION
        else:
            fits = feature.min_supported_version <= level <= feature.max_supported_version
        if not fits:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, None)
    if cluster.image.level >= DIRECTORIES:
        directories = set(request.log_dirs)
        taken = {
            directory
            for broker in cluster.image.brokers.by_id.values()
            if broker.broker_id != request.broker_id
            for directory in broker.log_dirs
        }
        is_reserved = any(
            directory[:15] == bytes(15) and directory[15] < 100 for directory in directories
        )
        if not directories or is_reserved or len(directories) != len(request.log_dirs):
            raise Refusal(ErrorCode.INVALID_REGISTRATION, None)
        if directories & taken:
            raise Refusal(ErrorCode.INVALID_REGISTRATION, None)


def decide_heartbeat(
    cluster: ControlledCluster, request: BrokerHeartbeatRequest
) -> MetadataDecision[BrokerHeartbeatResponse]:
    """Let a broker serve when it has caught up, and shut down when nothing depends on it."""
    try:
        broker = get_broker(cluster, request.broker_id, request.broker_epoch)
    except Refusal as refusal:
        return MetadataDecision((), BrokerHeartbeatResponse(error_code=refusal.code))
    # A broker's epoch is where its registration stands in the log.
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.broker_epoch,
        is_fenced=broker.fenced,
    )
    records: Iterator[Message] = iter(())
    if broker.fenced:
        response.should_shut_down = request.want_shut_down
        wants_to_serve = not request.want_fence and not request.want_shut_down
        # Who began to shut down comes back with a new registration only.
        if response.is_caught_up and wants_to_serve and not broker.in_controlled_shutdown:
            response.is_fenced = False
            records = _unfence(cluster, broker)
    elif request.want_shut_down and _leads(cluster, broker.broker_id):
        records = _begin_shutdown(cluster, broker)
    elif request.want_fence or request.want_shut_down:
        response.is_fenced = True
        response.should_shut_down = request.want_shut_down
        records = _fence(cluster, broker)
    return MetadataDecision(chain(records, _directory_changes(cluster, broker, request)), response)


def decide_unregister_broker(
    cluster: ControlledCluster, request: UnregisterBrokerRequest
) -> MetadataDecision[UnregisterBrokerResponse]:
    """Forget a broker; it may register again."""
    broker = cluster.image.brokers.find(request.broker_id)
    if broker is None:
        return MetadataDecision(
            (),
            UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker {request.broker_id} is not registered.",
            ),
        )
    record = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
    changes = _leave(cluster, broker.broker_id, is_lost=True)
    return MetadataDecision(chain(changes, [record]), UnregisterBrokerResponse(error_message=None))


def get_broker(
    cluster: ControlledCluster, broker_id: int, broker_epoch: int
) -> RegisterBrokerRecord:
    """Return a broker that speaks for its current registration, or refuse it."""
    broker = cluster.image.brokers.find(broker_id)
    if broker is None:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    if broker.broker_epoch != broker_epoch:
        raise Refusal(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} has epoch {broker.broker_epoch}, not {broker_epoch}.",
        )
    return broker


def _unfence(cluster: ControlledCluster, broker: RegisterBrokerRecord) -> Iterator[Message]:
    yield _changed(broker, fenced=UNFENCE)

    def may_lead(replica: int) -> bool:
        return replica == broker.broker_id or cluster.image.brokers.is_active(replica)

    def has_no_leader(partition: Partition) -> bool:
        return partition.leader == NO_LEADER

    yield from _change_partitions(cluster, has_no_leader, lambda _: PartitionWish(), may_lead)


def _fence(cluster: ControlledCluster, broker: RegisterBrokerRecord) -> Iterator[Message]:
    yield from _leave(cluster, broker.broker_id, is_lost=False)
    yield _changed(broker, fenced=FENCE)


def _begin_shutdown(cluster: ControlledCluster, broker: RegisterBrokerRecord) -> Iterator[Message]:
    if not broker.in_controlled_shutdown:
        yield _changed(broker, in_controlled_shutdown=SHUT_DOWN)
    yield from _leave(cluster, broker.broker_id, is_lost=False)


def _directory_changes(
    cluster: ControlledCluster, broker: RegisterBrokerRecord, request: BrokerHeartbeatRequest
) -> Iterator[Message]:
    """Take partitions away from directories that a broker has lost, and note cordoned ones."""
    online = tuple(each for each in broker.log_dirs if each not in request.offline_log_dirs)
    failed = set(broker.log_dirs) - set(online)
    if failed:
        broker_id = broker.broker_id

        def is_there(partition: Partition) -> bool:
            if broker_id not in partition.isr:
                return False
            return partition.directories[partition.replicas.index(broker_id)] in failed

        yield from _change_partitions(
            cluster, is_there, _without(broker_id), _others(cluster, broker_id)
        )
        yield _changed(broker, log_dirs=online)
    cordoned = request.cordoned_log_dirs
    if (
        cordoned is not None
        and cluster.image.level >= CORDONED_DIRECTORIES
        and tuple(cordoned) != tuple(broker.cordoned_log_dirs or ())
    ):
        yield _changed(broker, cordoned_log_dirs=tuple(cordoned))


def _changed(broker: RegisterBrokerRecord, **changes: object) -> BrokerRegistrationChangeRecord:
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.broker_epoch
    )
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def _leave(cluster: ControlledCluster, broker_id: int, *, is_lost: bool) -> Iterator[Message]:
    """Take a broker out of all in-sync sets, and out of the eligible ones if it lost records."""

    def concerns(partition: Partition) -> bool:
        return broker_id in partition.isr or (is_lost and broker_id in partition.eligible_leaders)

    lost = (broker_id,) if is_lost else ()
    return _change_partitions(
        cluster, concerns, _without(broker_id, lost), _others(cluster, broker_id)
    )


def _without(broker_id: int, lost: tuple[int, ...] = ()) -> Callable[[Partition], PartitionWish]:
    def wish(partition: Partition) -> PartitionWish:
        isr = [replica for replica in partition.isr if replica != broker_id]
        return PartitionWish(isr=isr, lost=lost)

    return wish


def _others(cluster: ControlledCluster, broker_id: int) -> Callable[[int], bool]:
    def may_lead(replica: int) -> bool:
        return replica != broker_id and cluster.image.brokers.is_active(replica)

    return may_lead


def _change_partitions(
    cluster: ControlledCluster,
    concerns: Callable[[Partition], bool],
    wish: Callable[[Partition], PartitionWish],
    may_lead: Callable[[int], bool],
) -> Iterator[PartitionChangeRecord]:
    for topic in cluster.image.topics:
        election = usual_election(cluster, topic)
        for index, partition in topic.partitions.items():
            if concerns(partition):
                change = change_partition(
                    cluster, topic, index, wish(partition), may_lead=may_lead, election=election
                )
                if change is not None:
                    yield change


def usual_election(cluster: ControlledCluster, topic: Topic) -> Electable:
    """Return the election that a topic allows when its leader is gone."""
    unclean = cluster.allows_unclean_election(topic.name)
    return Electable.UNCLEAN if unclean else Electable.ONLINE


def _leads(cluster: ControlledCluster, broker_id: int) -> bool:
    return any(
        partition.leader == broker_id
        for topic in cluster.image.topics
        for partition in topic.partitions.values()
    )
