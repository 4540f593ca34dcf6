"""Quotas and credentials are kept as records, and survive."""

import hashlib
import hmac

from moldau.controller.commands import AlterClientQuotas, AlterUserScramCredentials
from moldau.metadata.client_quotas import quotas_of
from moldau.metadata.image import ClusterImage
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.stored.cluster_metadata import UserScramCredentialRecord
from tests.unit.controller.cluster import TestCluster

ANN = frozenset({("user", "ann")})


def alter(cluster: TestCluster, key: str, value: float | None, **fields: bool) -> int:
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="user", entity_name="ann")],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    request = AlterClientQuotasRequest(entries=[entry], **fields)
    [result] = cluster.perform(AlterClientQuotas(request)).entries
    return result.error_code


def again(image: ClusterImage) -> ClusterImage:
    """Return what a snapshot of an image makes."""
    copied = ClusterImage()
    for record in image.records():
        copied.replay(record)
    return copied


def test_quotas_are_set_changed_and_removed() -> None:
    cluster = TestCluster()
    assert alter(cluster, "producer_byte_rate", 1000.0) == 0
    assert alter(cluster, "producer_byte_rate", 2000.0) == 0
    assert alter(cluster, "request_percentage", 0.5) == 0
    assert alter(cluster, "consumer_byte_rate", 0.5) == ErrorCode.INVALID_REQUEST
    expected = {"producer_byte_rate": 2000.0, "request_percentage": 0.5}
    assert quotas_of(cluster.image) == quotas_of(again(cluster.image)) == {ANN: expected}
    assert alter(cluster, "producer_byte_rate", None) == 0
    assert alter(cluster, "request_percentage", None) == 0
    assert quotas_of(cluster.image) == {}


def test_what_changes_nothing_is_not_written() -> None:
    cluster = TestCluster()
    assert alter(cluster, "producer_byte_rate", 1000.0) == 0
    written = len(cluster.log)
    assert alter(cluster, "producer_byte_rate", 1000.0) == 0
    assert alter(cluster, "consumer_byte_rate", None) == 0
    assert alter(cluster, "producer_byte_rate", 5.0, validate_only=True) == 0
    assert len(cluster.log) == written


def credentials(cluster: TestCluster) -> list[UserScramCredentialRecord]:
    return list(again(cluster.image).kept.records(UserScramCredentialRecord))


def test_of_a_password_only_its_keys_are_kept() -> None:
    cluster = TestCluster()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    wish = ScramCredentialUpsertion(
        name="ann", mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
    )
    request = AlterUserScramCredentialsRequest(upsertions=[wish])
    [result] = cluster.perform(AlterUserScramCredentials(request)).results
    assert (result.user, result.error_code) == ("ann", 0)
    [kept] = credentials(cluster)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    assert kept.stored_key == hashlib.sha256(client_key).digest()
    assert kept.server_key == hmac.digest(salted, b"Server Key", "sha256")
    assert (kept.salt, kept.iterations, kept.mechanism) == (b"salt", 4096, 1)
    deletion = ScramCredentialDeletion(name="ann", mechanism=1)
    request = AlterUserScramCredentialsRequest(deletions=[deletion])
    assert cluster.perform(AlterUserScramCredentials(request)).results[0].error_code == 0
    assert credentials(cluster) == []


def test_credentials_need_a_level_that_has_them() -> None:
    cluster = TestCluster(level=10)
    deletion = ScramCredentialDeletion(name="ann", mechanism=1)
    request = AlterUserScramCredentialsRequest(deletions=[deletion])
    [result] = cluster.perform(AlterUserScramCredentials(request)).results
    assert result.error_code == ErrorCode.UNSUPPORTED_VERSION
