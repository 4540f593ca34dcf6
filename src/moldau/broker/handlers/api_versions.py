"""ApiVersions v0-v5: v3 flexible, names the client's software; v5 names who it means to reach.

A version from the future is answered as v0, with the versions there are (KIP-511).
"""

import re
from collections.abc import Iterator
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.served import HANDLERS, Served, advertised_apis
from moldau.metadata.features import KRAFT_VERSION, SUPPORTED
from moldau.protocol.apis import API_VERSIONS
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NO_NODE: Final = -1


def handle_api_versions(
    broker: Broker, call: Call, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Tell which APIs and features there are."""
    if not _is_valid(request, call.version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    call.peer.software_name = request.client_software_name
    call.peer.software_version = request.client_software_version
    # KIP-1242: an address that now leads elsewhere makes the client start over.
    if request.cluster_id is not None and (
        request.cluster_id != broker.cluster_id or request.node_id != broker.node_id
    ):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    # KAFKA-17492: older Java clients fail on a feature whose lowest level is 0.
    lowest = 0 if call.version >= 4 else 1
    has_metrics = bool(broker.settings.moldau_metrics_listener)
    return ApiVersionsResponse(
        api_keys=[
            _versions(served, has_two_phase=broker.settings.transaction_two_phase_commit_enable)
            for served in advertised_apis(has_metrics=has_metrics)
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
            for name, levels in SUPPORTED.items()
            if levels.lowest >= lowest and levels.highest
        ],
        finalized_features_epoch=broker.metadata_offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in _levels(broker)
        ],
    )


def _levels(broker: Broker) -> Iterator[tuple[str, int]]:
    """Return the features of the cluster; the quorum keeps one of them, and names it above 0."""
    yield from broker.image.levels.items()
    if broker.controller.kraft_version:
        yield KRAFT_VERSION, broker.controller.kraft_version


def unsupported_version() -> ApiVersionsResponse:
    """Return what a client gets, as v0, that asked in a version which we do not know."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_versions(HANDLERS[API_VERSIONS])]
    )


def _versions(served: Served, *, has_two_phase: bool = False) -> ApiVersion:
    last = served.last if has_two_phase else min(served.last, served.api.last_stable)
    return ApiVersion(api_key=served.api.key, min_version=served.first, max_version=last)


def _is_valid(request: ApiVersionsRequest, version: int) -> bool:
    if (request.cluster_id is None) != (request.node_id == _NO_NODE):
        return False
    if version < 3:
        return True
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)
