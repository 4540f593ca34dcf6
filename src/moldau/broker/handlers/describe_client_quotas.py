"""DescribeClientQuotas v0-v1. v1 flexible."""

from collections.abc import Mapping
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.coordination.refusal import Refusal
from moldau.metadata.client_quotas import IP, KINDS, Entity, quotas_of
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2
_MATCHES_WITHOUT_NAME: Final = {_DEFAULT: "MATCH_TYPE_DEFAULT", _ANY: "MATCH_TYPE_SPECIFIED"}


def handle_describe_client_quotas(
    broker: Broker,
    call: Call,  # noqa: ARG001
    request: DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse:
    """Tell the quotas of entities with all the parts that are asked for; strict: no others."""
    try:
        wanted = _wanted(request)
    except Refusal as refusal:
        return DescribeClientQuotasResponse(
            error_code=refusal.code, error_message=refusal.message, entries=None
        )
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name)
                    for kind, name in sorted(entity, key=lambda part: part[0])
                ],
                values=[ValueData(key=key, value=values[key]) for key in sorted(values)],
            )
            for entity, values in quotas_of(broker.image).items()
            if _matches(entity, wanted, is_strict=request.strict)
        ],
    )


def _wanted(request: DescribeClientQuotasRequest) -> Mapping[str, ComponentData]:
    """Return the parts that are asked for, by their kinds; `Refusal` if they cannot be."""
    wanted: dict[str, ComponentData] = {}
    for part in request.components:
        _check(part)
        if part.entity_type in wanted:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"Entity type {part.entity_type} cannot appear more than once in the filter.",
            )
        wanted[part.entity_type] = part
    if IP in wanted and len(wanted) > 1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return wanted


def _check(part: ComponentData) -> None:
    if not part.entity_type:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if part.entity_type not in KINDS:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {part.entity_type}")
    if part.match_type == _EXACT:
        if part.match is None:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                "Request specified MATCH_TYPE_EXACT, but set match string to null.",
            )
        return
    name = _MATCHES_WITHOUT_NAME.get(part.match_type)
    if name is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown match type {part.match_type}")
    if part.match is not None:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Request specified {name}, but also specified a match string.",
        )


def _matches(entity: Entity, wanted: Mapping[str, ComponentData], *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    parts = dict(entity)
    # An exact name and the default, None, are both what the part says.
    return all(
        kind in parts and (part.match_type == _ANY or parts[kind] == part.match)
        for kind, part in wanted.items()
    )
