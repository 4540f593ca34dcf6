"""librdkafka's own metrics, pushed to us (KIP-714) and told to Prometheus beside ours."""

import re
import time
import urllib.request
from pathlib import Path

from confluent_kafka import Producer

from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.conformance.brokers import run_moldau
from tests.wire import Wire

METRIC = re.compile(r'^kafka_client_producer_\w+\{client_id="told",.*\} \S+$', re.MULTILINE)
SECONDS_MAX = 30


def test_librdkafka_pushes_its_metrics(tmp_path: Path) -> None:
    with run_moldau(tmp_path, {"moldau.metrics.listener": "127.0.0.1:0"}) as broker:
        with Wire(broker.host, broker.port) as wire:
            _subscribe(wire)
        url = re.search(r"http://\S+", "\n".join(broker.output))
        assert url is not None
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "told"})
        deadline = time.monotonic() + SECONDS_MAX
        found: list[str] = []
        while not found:
            assert time.monotonic() < deadline
            producer.produce("rivers", b"water")
            producer.poll(0.1)
            with urllib.request.urlopen(url[0]) as page:
                found = METRIC.findall(page.read().decode())
        producer.flush(SECONDS_MAX)


def _subscribe(wire: Wire) -> None:
    configs = [
        AlterableConfig(name="metrics", value="org.apache.kafka.producer."),
        AlterableConfig(name="interval.ms", value="500"),
        AlterableConfig(name="match", value="client_id=told,client_software_name=.*python"),
    ]
    resource = AlterConfigsResource(resource_type=16, resource_name="all", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [answer] = wire.call(request, IncrementalAlterConfigsResponse, 1).responses
    assert answer.error_code == 0, answer.error_message
