"""Clients' metrics beside our own."""

from moldau.broker.calls import Call, Endpoint, Peer
from moldau.broker.client_telemetry import ClientTelemetry
from moldau.broker.otlp import Point
from moldau.kernel.clock import Instant
from moldau.metadata.configs import Configs
from moldau.runtime.client_metrics import measure_clients
from moldau.runtime.metrics import Metrics
from tests.unit.broker.world import Connection

NOW = Instant(5.0, 1_700_000_000_000)


def test_lines() -> None:
    telemetry = ClientTelemetry()
    peer = Peer("PLAINTEXT", "127.0.0.1", Endpoint("localhost", 9092))
    call = Call(72, 0, 1, 'a "client"', peer, NOW, Connection())
    instance = telemetry.instance(b"i" * 16, call, Configs())
    telemetry.record(
        instance,
        [
            Point("polls", (), 3, is_increase=True),
            Point("lag", (("a.b", "1"),), 2, is_increase=False),
            Point("lag", (("a_b", "1"),), 9, is_increase=False),
            Point("polls.total", (("x", "y"),), 4, is_increase=False),
        ],
    )
    metrics = Metrics()
    metrics.counter("moldau_own", "Ours.").value = 7
    measure_clients(metrics, telemetry, lambda: NOW)
    who = (
        'client_id="a \\"client\\"",client_instance_id="aWlpaWlpaWlpaWlpaWlpaQ",'
        'client_software_name=""'
    )
    assert metrics.render().splitlines() == [
        "# HELP moldau_own Ours.",
        "# TYPE moldau_own counter",
        "moldau_own 7",
        "# HELP kafka_client_lag Pushed by clients.",
        "# TYPE kafka_client_lag gauge",
        f'kafka_client_lag{{a_b="1",{who}}} 2',
        "# HELP kafka_client_polls_total Pushed by clients.",
        "# TYPE kafka_client_polls_total untyped",
        f"kafka_client_polls_total{{{who}}} 3.0",
        f'kafka_client_polls_total{{{who},x="y"}} 4',
    ]
