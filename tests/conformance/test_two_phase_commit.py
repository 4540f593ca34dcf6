"""Two-phase commit (KIP-939) with Kafka's own client 4.4.0, as far as that goes.

Prepared transactions that another producer goes on with are in test_our_transactions.
"""

import subprocess
from pathlib import Path

from moldau.client.admin import Admin
from tests.conformance import jars
from tests.conformance.brokers import RunningBroker, run_moldau

DEFAULT_TIMEOUT_MS = 60_000
SECONDS_MAX = 90


def start(broker: RunningBroker, topic: str) -> subprocess.Popen[str]:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(topic)
    return subprocess.Popen(
        jars.command("TwoPhase", broker.bootstrap_servers, topic),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def test_kafkas_client_has_the_setting_and_does_not_ask(tmp_path: Path) -> None:
    settings = {"transaction.two.phase.commit.enable": "true"}
    with run_moldau(tmp_path, settings) as broker, start(broker, "two-phase") as java:
        assert java.stdout
        assert java.stdout.readline() == "open\n"
        with Admin(broker.bootstrap_servers) as admin:
            described = admin.describe_transactions(["two-phase"])["two-phase"]
        assert described.state == "Ongoing"
        assert described.timeout_ms == DEFAULT_TIMEOUT_MS, "two-phase commit has no timeout"
        printed, _ = java.communicate("\n", SECONDS_MAX)
        assert printed == "committed\n"
