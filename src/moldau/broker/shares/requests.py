"""What ShareFetch and ShareAcknowledge have in common."""

from typing import TYPE_CHECKING, Final

from moldau.broker.shares.sessions import SessionKey
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_fetch import ShareFetchRequest

if TYPE_CHECKING:
    from moldau.broker.broker import Broker

MEMBER_ID_LENGTH_MAX: Final = 36


def check_enabled(broker: "Broker") -> None:
    """Refuse what is of share groups where the cluster has none."""
    if not broker.shares.is_enabled:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION, "The cluster's share.version has no share groups."
        )


def is_member_id(member_id: str | None) -> bool:
    """Whether members may be called so: clients make their own ids, and uuids are expected."""
    return bool(member_id) and len(member_id or "") <= MEMBER_ID_LENGTH_MAX


def check_member(broker: "Broker", group_id: str | None, member_id: str | None) -> SessionKey:
    """Return who asks."""
    check_enabled(broker)
    if group_id is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if member_id is None or not is_member_id(member_id):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return SessionKey(group_id, member_id)


def refuse_renewal(request: ShareFetchRequest) -> None:
    """Refuse to fetch with a request that renews locks (KIP-1222)."""
    values = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if any(values):
        raise Refusal(
            ErrorCode.INVALID_REQUEST, "A request that renews locks must not ask for records."
        )
