"""What a node tells Prometheus, over HTTP, and docs/metrics.md, which says what it means."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from moldau.client.producer import Producer
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from tests.integration.nodes import Client, running
from tests.nodes import RunningNode

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| .* \|$", re.MULTILINE)
HELP = re.compile(r"^# HELP (\w+) (.*)\n# TYPE \1 (\w+)$", re.MULTILINE)
SAMPLE = re.compile(r"^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$", re.MULTILINE)
PER_TOPIC = 8
PER_PARTITION = 5


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RunningNode]:
    with running("--data", tmp_path, "--metrics", "127.0.0.1:0") as started:
        yield started


def scrape(node: RunningNode) -> str:
    [address] = re.findall(r"metrics: (http://\S+)", "\n".join(node.output))
    with urlopen(address) as response:
        text: str = response.read().decode()
    return text


def labels_of(text: str) -> dict[str, str]:
    """Return the labels of each metric, as the page names them."""
    found: dict[str, set[str]] = {}
    for name, labels, _ in SAMPLE.findall(text):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return {name: ", ".join(sorted(labels - {"le"})) for name, labels in found.items()}


def test_the_page_lists_what_is_told(node: RunningNode) -> None:
    with Client(node) as client:
        client.create("orders")
        client.produce("orders", b"a")
    _commit(node, "orders")
    text = scrape(node)
    assert 'moldau_groups{state="Empty",type="classic"} 1\n' in text
    assert "moldau_group_offsets 1\n" in text
    assert 'moldau_transactional_ids{state="CompleteCommit"} 1\n' in text
    assert 'moldau_coordinator_partitions{state="active",topic="__consumer_offsets"} 50\n' in text
    labels = labels_of(text)
    told = {name: (kind, labels[name], about) for name, about, kind in HELP.findall(text)}
    rows = ROW.findall(PAGE.read_text())
    listed = {name: (kind, labels, about) for name, kind, labels, about in rows}
    assert listed == told
    assert len(listed) == len(rows), "each once"


def _commit(node: RunningNode, topic: str) -> None:
    """Commit an offset, and a transaction."""
    servers = node.bootstrap_servers
    with Consumer(servers, group_id="readers") as consumer:
        consumer.assign([(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): 1})
    with Producer(servers, transactional_id="writer") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"b")
    deadline = time.monotonic() + 30
    while "CompleteCommit" not in scrape(node):  # the markers are written after the answer
        assert time.monotonic() < deadline


def test_a_topics_traffic_is_counted_and_goes_with_the_topic(node: RunningNode) -> None:
    with Client(node) as client:
        client.create("orders", "other", partitions=2)
        client.produce("orders", b"a", b"b", b"c")
        client.produce("orders", b"d", partition=1)
        client.fetch("orders")
        text = scrape(node)
        values = {(name, labels): float(value) for name, labels, value in SAMPLE.findall(text)}
        orders = {
            name.removeprefix("moldau_topic_"): value
            for (name, labels), value in values.items()
            if labels == 'topic="orders"'
        }
        size = orders.pop("bytes_in_total")
        assert 0 < orders.pop("bytes_out_total") < size
        assert orders == {
            "messages_in_total": 4,
            "bytes_rejected_total": 0,
            "produce_requests_total": 2,
            "produce_requests_failed_total": 0,
            "fetch_requests_total": 1,
            "fetch_requests_failed_total": 0,
        }
        first = 'partition="0",topic="orders"'
        assert values["moldau_partition_log_end_offset", first] == 3
        assert values["moldau_partition_high_watermark", first] == 3
        assert values["moldau_partitions_led", ""] == 4
        assert values["moldau_controller_active", ""] == 1
        assert len(re.findall('topic="orders"', text)) == PER_TOPIC + 2 * PER_PARTITION
        client.delete("orders")
        text = scrape(node)
        assert 'topic="orders"' not in text
        assert len(re.findall('topic="other"', text)) == PER_TOPIC + 2 * PER_PARTITION
