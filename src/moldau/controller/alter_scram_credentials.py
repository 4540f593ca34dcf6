"""Setting and deleting the SCRAM credentials of users. The rules and the texts are Kafka's."""

import hashlib
import hmac
from collections import Counter
from typing import Final, TypeAlias, cast

from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision, Records
from moldau.coordination.refusal import Refusal
from moldau.metadata.features import SCRAM
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

_HASHES: Final = {1: hashlib.sha256, 2: hashlib.sha512}
"""By the numbers of the mechanisms, SCRAM-SHA-256 and SCRAM-SHA-512."""
_ITERATIONS_MIN: Final = 4096
_ITERATIONS_MAX: Final = 16384


CredentialWish: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


def decide_alter_user_scram_credentials(
    cluster: ControlledCluster, request: AlterUserScramCredentialsRequest
) -> MetadataDecision[AlterUserScramCredentialsResponse]:
    """Delete and set credentials; each user is answered for itself."""
    wishes: list[CredentialWish] = [*request.deletions, *request.upsertions]
    counts = Counter(wish.name for wish in wishes)
    records: Records = []
    results: dict[str, AlterUserScramCredentialsResult] = {}
    for wish in wishes:
        if wish.name in results:
            continue
        result = results[wish.name] = AlterUserScramCredentialsResult(
            user=wish.name, error_message=None
        )
        try:
            _check(cluster, wish)
            if counts[wish.name] > 1:
                raise Refusal(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            records.append(_record(wish))
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
    return MetadataDecision(
        records, AlterUserScramCredentialsResponse(results=list(results.values()))
    )


def _check(cluster: ControlledCluster, wish: CredentialWish) -> None:
    """`Refusal` if a credential cannot be."""
    if cluster.image.level < SCRAM:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
        )
    if not wish.name:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if wish.mechanism not in _HASHES:
        raise Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(wish, ScramCredentialDeletion):
        if not any(
            (credential.name, credential.mechanism) == (wish.name, wish.mechanism)
            for credential in (
                cast("UserScramCredentialRecord", record)
                for record in cluster.image.kept.records(UserScramCredentialRecord)
            )
        ):
            raise Refusal(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
    elif wish.iterations < _ITERATIONS_MIN:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif wish.iterations > _ITERATIONS_MAX:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _record(wish: CredentialWish) -> Message:
    if isinstance(wish, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=wish.name, mechanism=wish.mechanism)
    if not wish.salted_password:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)  # so Kafka says that a key is missing
    # RFC 5802: what is kept proves a client's key, and does not tell it.
    digest = _HASHES[wish.mechanism]
    client_key = hmac.digest(wish.salted_password, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=wish.name,
        mechanism=wish.mechanism,
        salt=bytes(wish.salt),
        stored_key=digest(client_key).digest(),
        server_key=hmac.digest(wish.salted_password, b"Server Key", digest),
        iterations=wish.iterations,
    )
