"""Access control, tokens, quotas and credentials, asked of brokers without security."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

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
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from moldau.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.protocol.schema import Message
from tests.conformance.admin_script import Administrator
from tests.wire import Wire, wait_for


def ask_about_security(wire: Wire) -> Mapping[str, Message]:
    """Ask everything once; return the answers."""
    admin = Administrator(wire, "")
    for part in (
        access_control,
        delegation_tokens,
        client_quotas,
        bad_client_quotas,
        scram_credentials,
    ):
        part(admin)
    return admin.answers


def access_control(admin: Administrator) -> None:
    """There is no authorizer."""
    any_, topic_type, literal, allow, read = 1, 2, 3, 3, 3
    every = {"resource_type_filter": any_, "operation": any_, "permission_type": any_}
    admin.ask_all("all", DescribeAclsRequest(**every))
    admin.ask_all("of a topic", DescribeAclsRequest(**every | {"resource_name_filter": "a"}))
    creation = AclCreation(
        resource_type=topic_type,
        resource_name="a",
        resource_pattern_type=literal,
        principal="User:ann",
        host="*",
        operation=read,
        permission_type=allow,
    )
    admin.ask_all("one", CreateAclsRequest(creations=[creation]))
    admin.ask_all("two", CreateAclsRequest(creations=[creation, creation]))
    admin.ask_all("none", CreateAclsRequest())
    admin.ask_all("all of them", DeleteAclsRequest(filters=[DeleteAclsFilter(**every)]))
    admin.ask_all("twice", DeleteAclsRequest(filters=[DeleteAclsFilter(**every)] * 2))
    admin.ask_all("none", DeleteAclsRequest())


def delegation_tokens(admin: Administrator) -> None:
    """There is no secret that tokens would be made with, and none that proves who asks."""
    renewers = [CreatableRenewers(principal_type="User", principal_name="ann")]
    admin.ask_all("one", CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=1000))
    admin.ask_all("one for me", CreateDelegationTokenRequest(max_lifetime_ms=-1))
    admin.ask_all("one", RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1000))
    admin.ask_all("one", ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=1000))
    admin.ask_all("all", DescribeDelegationTokenRequest(owners=None))
    admin.ask_all("none", DescribeDelegationTokenRequest(owners=[]))
    owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name="ann")]
    admin.ask_all("one", DescribeDelegationTokenRequest(owners=owners))


Entity = Mapping[str, str | None]
Part = tuple[str, int, str | None]
EXACT, DEFAULT, ANY = range(3)
RATE: Final = {"producer_byte_rate": 1000.0}
ANN: Final[Entity] = {"user": "ann"}


def _described(*parts: Part, strict: bool = False) -> DescribeClientQuotasRequest:
    components = [
        ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in parts
    ]
    return DescribeClientQuotasRequest(components=components, strict=strict)


class Quotas:
    """Asks about quotas, and changes them."""

    def __init__(self, admin: Administrator) -> None:
        self._admin = admin

    def describe(self, name: str, *parts: Part, strict: bool = False) -> None:
        self._admin.ask_all(name, _described(*parts, strict=strict))

    def alter(
        self, name: str, *changes: tuple[Entity, Mapping[str, float | None]], **fields: Any
    ) -> None:
        entries = [
            AlterClientQuotasRequestEntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=each) for kind, each in entity.items()
                ],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in ops.items()
                ],
            )
            for entity, ops in changes
        ]
        self._admin.ask_all(name, AlterClientQuotasRequest(entries=entries, **fields))

    def count(self, *parts: Part) -> int:
        """Return how many values there are."""
        answer = self._admin.call(_described(*parts, strict=bool(parts)), 1)
        return sum(len(entry.values) for entry in answer.entries)


def client_quotas(admin: Administrator) -> None:
    quotas = Quotas(admin)
    describe, alter = quotas.describe, quotas.alter
    describe("all, none yet")
    alter("validated only", (ANN, RATE), validate_only=True)
    alter("a user", (ANN, RATE))
    alter("the default user", ({"user": None}, {"consumer_byte_rate": 1500.0}))
    alter("a client", ({"client-id": "c"}, {"request_percentage": 200.5}))
    alter("a user's client", ({"user": "ann", "client-id": "c"}, RATE))
    alter("a user's default client", ({"user": "ann", "client-id": None}, RATE))
    alter("an address", ({"ip": "127.0.0.1"}, {"connection_creation_rate": 5.0}))
    alter("the default address", ({"ip": None}, {"connection_creation_rate": 7.0}))
    alter("several", (ANN, {"controller_mutation_rate": 3.5, "consumer_byte_rate": 2.0}))
    wait_for(lambda: quotas.count() == 9)
    describe("all")
    describe("all, strictly", strict=True)
    names = ((EXACT, "ann"), (EXACT, "c"), (EXACT, "127.0.0.1"), (DEFAULT, None), (ANY, None))
    for kind in ("user", "client-id", "ip"):
        for match, name in names:
            describe(f"{kind} {match} {name}", (kind, match, name))
            describe(f"{kind} {match} {name}, strictly", (kind, match, name), strict=True)
    both: tuple[Part, Part] = (("user", EXACT, "ann"), ("client-id", ANY, None))
    describe("two parts", *both)
    describe("two parts, strictly", *both, strict=True)
    describe("two, a default", both[0], ("client-id", DEFAULT, None), strict=True)
    describe("one part twice", both[0], both[0])
    describe("an unknown kind", ("nope", ANY, None))
    describe("an empty kind", ("", ANY, None))
    describe("an address and a user", ("ip", ANY, None), ("user", ANY, None))
    describe("an unknown match", ("user", 7, None))
    describe("an exact match of nothing", ("user", EXACT, None))
    describe("a default with a name", ("user", DEFAULT, "ann"))
    describe("any with a name", ("user", ANY, "ann"))
    alter("what is not set, removed", (ANN, {"request_percentage": None}))
    alter("an unknown key, removed", (ANN, {"nope": None}))
    alter("removed", ({"ip": None}, {"connection_creation_rate": None}))
    keys = ("producer_byte_rate", "controller_mutation_rate", "consumer_byte_rate")
    alter("everything of a user removed", (ANN, dict.fromkeys(keys)))
    wait_for(lambda: quotas.count() == 5)
    describe("what is left")


def bad_client_quotas(admin: Administrator) -> None:
    alter = Quotas(admin).alter
    alter("an unknown key", (ANN, {"nope": 1.0}))
    alter("an address's wrong key", ({"ip": "127.0.0.1"}, RATE))
    alter("a user's wrong key", (ANN, {"connection_creation_rate": 5.0}))
    alter("an unknown kind", ({"nope": "x"}, RATE))
    alter("an empty kind", ({"": "x"}, RATE))
    alter("no entity", ({}, RATE))
    alter("an empty name", ({"user": ""}, RATE), validate_only=True)
    alter("an address and a user", ({"ip": "127.0.0.1", "user": "ann"}, RATE))
    alter("no address", ({"ip": "not an address"}, {"connection_creation_rate": 5.0}))
    alter("an empty address", ({"ip": ""}, {"connection_creation_rate": 5.0}), validate_only=True)
    for value in (0.0, -1.0, 0.5, 1e300, float("nan"), float("inf"), float(1 << 53)):
        for key in ("producer_byte_rate", "request_percentage", "controller_mutation_rate"):
            alter(f"{key} {value}", (ANN, {key: value}), validate_only=True)
        connections = {"connection_creation_rate": value}
        alter(f"connections {value}", ({"ip": None}, connections), validate_only=True)
    alter("nothing")
    alter("no change", (ANN, {}))
    twice = (ANN, RATE), (ANN, {"producer_byte_rate": 2.0})
    alter("an entity twice", *twice, validate_only=True)
    alter("good and bad", ({"user": "bob"}, RATE), (ANN, {"nope": 1.0}))
    bad_and_good = {"nope": 1.0, "producer_byte_rate": 3.0}
    alter("good and bad of one", (ANN, bad_and_good))


def scram_credentials(admin: Administrator) -> None:
    sha_256, sha_512 = 1, 2

    def describe(name: str, *users: str) -> None:
        wanted = [UserName(name=user) for user in users]
        admin.ask_all(name, DescribeUserScramCredentialsRequest(users=wanted))

    def alter(
        name: str,
        *upsertions: tuple[str, int, int],
        deletions: Sequence[tuple[str, int]] = (),
        size: int | None = None,
        salt: bytes = b"salt",
    ) -> None:
        sizes = {sha_256: 32, sha_512: 64}
        request = AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name=n, mechanism=m) for n, m in deletions],
            upsertions=[
                ScramCredentialUpsertion(
                    name=user,
                    mechanism=mechanism,
                    iterations=iterations,
                    salt=salt,
                    salted_password=b"p" * (sizes.get(mechanism, 8) if size is None else size),
                )
                for user, mechanism, iterations in upsertions
            ],
        )
        admin.ask_all(name, request)

    def found() -> list[tuple[str, int]]:
        answer = admin.call(DescribeUserScramCredentialsRequest(users=None), 0)
        return [(each.user, len(each.credential_infos)) for each in answer.results]

    admin.ask_all("all, none yet", DescribeUserScramCredentialsRequest(users=None))
    describe("none, none yet")
    describe("an unknown user", "ann")
    alter("a user", ("ann", sha_256, 4096))
    alter("another mechanism", ("ann", sha_512, 8192))
    alter("another user", ("bob", sha_256, 4096))
    wait_for(lambda: sorted(found()) == [("ann", 2), ("bob", 1)])
    admin.ask_all("all", DescribeUserScramCredentialsRequest(users=None))
    describe("none")
    describe("a user", "ann")
    describe("two users", "bob", "ann")
    describe("a user twice", "ann", "ann")
    describe("some", "ann", "nope")
    describe("no name", "")
    alter("too few iterations", ("ann", sha_256, 4095))
    alter("too many iterations", ("ann", sha_256, 16385))
    alter("the most iterations", ("bob", sha_256, 16384))
    alter("an unknown mechanism", ("ann", 7, 4096))
    alter("no mechanism", ("ann", 0, 4096))
    alter("no name", ("", sha_256, 4096))
    alter("a user twice", ("ann", sha_256, 4096), ("ann", sha_256, 4096))
    alter("a user's two mechanisms", ("cid", sha_256, 4096), ("cid", sha_512, 4096))
    alter("deleted and set", ("ann", sha_256, 4096), deletions=[("ann", sha_256)])
    alter("good and bad", ("dan", sha_256, 4096), ("ann", sha_256, 1))
    alter("no salt", ("eve", sha_256, 4096), salt=b"")
    alter("no password", ("fay", sha_256, 4096), size=0)
    alter("a short password", ("fay", sha_256, 4096), size=8)
    alter("nothing")
    alter("an unknown user deleted", deletions=[("nope", sha_256)])
    alter("an unknown mechanism deleted", deletions=[("bob", sha_512)])
    alter("a mechanism that is none, deleted", deletions=[("bob", 7)])
    alter("no name deleted", deletions=[("", sha_256)])
    alter("deleted twice", deletions=[("ann", sha_256), ("ann", sha_256)])
    alter("deleted", deletions=[("bob", sha_256)])
    wait_for(lambda: "bob" not in dict(found()))
    admin.ask_all("what is left", DescribeUserScramCredentialsRequest(users=None))
