"""What Kafka's tools and librdkafka say of access control, quotas and credentials: no security."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.conformance.apache_kafka import run_java
from tests.conformance.both_tools import LOGGED
from tests.conformance.brokers import RunningBroker, run_apache, run_moldau

PATTERN = (ResourceType.TOPIC, "rivers", ResourcePatternType.LITERAL)
ENTRY = ("User:ann", "*", AclOperation.READ, AclPermissionType.ALLOW)
CONFIGS = "kafka.admin.ConfigCommand"
QUOTAS = "producer_byte_rate=1024,request_percentage=12.5"
CONNECTIONS = "connection_creation_rate=5"
CREDENTIAL = "SCRAM-SHA-256=[iterations=8192,password=secret]"
COMMANDS: Sequence[tuple[str, str]] = (
    ("org.apache.kafka.tools.AclCommand", "--list"),
    (CONFIGS, f"--alter --entity-type clients --entity-name c --add-config {QUOTAS}"),
    (CONFIGS, f"--alter --entity-type ips --entity-name ::1 --add-config {CONNECTIONS}"),
    (CONFIGS, f"--alter --entity-type users --entity-name ann --add-config {CREDENTIAL}"),
    (CONFIGS, "--alter --entity-type clients --entity-name c --delete-config request_percentage"),
    (CONFIGS, "--describe --entity-type clients"),
    (CONFIGS, "--describe --entity-type ips"),
    (CONFIGS, "--describe --entity-type users"),
)


@pytest.fixture(scope="module", params=["ours", "apache"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    run = run_moldau if request.param == "ours" else run_apache
    with run(tmp_path_factory.mktemp("node"), {}) as running:
        yield running


def code_of(error: pytest.ExceptionInfo[KafkaException]) -> int:
    found = error.value.args[0]
    assert isinstance(found, KafkaError)
    return found.code()


def test_librdkafka(server: RunningBroker) -> None:
    quiet = {"log_level": 0}  # it outlives the broker, and would complain
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, **quiet})
    # The error is dropped on its way to Python; an API that is not served would raise.
    assert admin.describe_acls(AclBindingFilter(*PATTERN, *ENTRY)).result(30) == []
    for future in admin.create_acls([AclBinding(*PATTERN, *ENTRY)]).values():
        with pytest.raises(KafkaException) as refused:
            future.result(30)
        assert code_of(refused) == KafkaError.SECURITY_DISABLED
    for future in admin.delete_acls([AclBindingFilter(*PATTERN, *ENTRY)]).values():
        with pytest.raises(KafkaException) as refused:
            future.result(30)
        assert code_of(refused) == KafkaError.SECURITY_DISABLED
    assert admin.describe_user_scram_credentials().result(30) == {}
    with pytest.raises(KafkaException) as refused:
        admin.describe_user_scram_credentials(["nobody"])["nobody"].result(30)
    assert code_of(refused) == KafkaError.RESOURCE_NOT_FOUND
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 5000)
    wish = UserScramCredentialUpsertion("eve", info, b"secret", b"salt")
    admin.alter_user_scram_credentials([wish])["eve"].result(30)
    # Kafka's broker hears of it some time after its controller has answered.
    deadline = time.monotonic() + 30
    while not (described := admin.describe_user_scram_credentials().result(30)):
        assert time.monotonic() < deadline, "eve is not known"
    infos = described["eve"].scram_credential_infos
    assert [(each.mechanism, each.iterations) for each in infos] == [
        (info.mechanism, info.iterations)
    ]


def test_the_tools_print_the_same(tmp_path: Path) -> None:
    printed = []
    for run in (run_apache, run_moldau):
        directory = tmp_path / run.__name__
        directory.mkdir()
        with run(directory, {}) as broker:
            printed.append([run_tool(broker, directory, *command) for command in COMMANDS])
    kafkas, ours = printed
    for command, theirs, our in zip(COMMANDS, kafkas, ours, strict=True):
        assert our == theirs, command
    assert "SecurityDisabledException:" in "".join(ours[0])
    assert "iterations=8192" in "".join(ours[-1])


def run_tool(broker: RunningBroker, directory: Path, tool: str, words: str) -> list[str]:
    where = ("--bootstrap-server", broker.bootstrap_servers)
    done = run_java(directory, tool, *where, *words.split())
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not LOGGED.match(line)]
    # The order of entities and of their configs means nothing.
    return sorted(" ".join(sorted(line.replace(",", " ").split())) for line in lines)
