"""The controller's own beginnings: the first records, and the registration of its node."""

from moldau.controller.alter_configs import eligible_leader_configs
from moldau.controller.cluster import ControlledCluster
from moldau.controller.commands import Activate
from moldau.controller.decision import MetadataDecision, Records
from moldau.metadata.bootstrap import first_records
from moldau.metadata.features import CONTROLLER_REGISTRATIONS, ELIGIBLE_LEADER_REPLICAS_VERSION
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    ControllerEndpoint,
    ControllerFeature,
    FeatureLevelRecord,
    RegisterControllerRecord,
)


def decide_activate(cluster: ControlledCluster, command: Activate) -> MetadataDecision[None]:
    """Write the first records of a new cluster; drop what a leader before us left half done."""
    records: Records = []
    if cluster.image.is_in_transaction:
        records.append(AbortTransactionRecord(reason="The leader changed."))
    if cluster.image.is_empty:
        bootstrap = list(command.bootstrap)
        if any(
            isinstance(record, FeatureLevelRecord)
            and record.name == ELIGIBLE_LEADER_REPLICAS_VERSION
            and record.feature_level
            for record in bootstrap
        ):
            bootstrap += eligible_leader_configs(cluster)
        records += first_records(bootstrap)
    return MetadataDecision(records, None)


def decide_register_controller(
    cluster: ControlledCluster, request: ControllerRegistrationRequest
) -> MetadataDecision[ControllerRegistrationResponse]:
    """Register a node of the quorum, so that brokers can be told where it is."""
    if cluster.image.level < CONTROLLER_REGISTRATIONS:
        return MetadataDecision(
            (),
            ControllerRegistrationResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                error_message="This metadata.version has no registrations of controllers.",
            ),
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=[
            ControllerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in request.listeners
        ],
        features=[
            ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return MetadataDecision([record], ControllerRegistrationResponse(error_message=None))
