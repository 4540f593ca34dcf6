import logging

import pytest

from moldau.broker.calls import Call, Endpoint, Peer
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.runtime.metrics import Metrics
from moldau.runtime.request_watch import QUIET_SECONDS, RequestWatch
from tests.unit.broker.world import Connection


def call_at(monotonic: float) -> Call:
    peer = Peer("PLAINTEXT", "10.0.0.9", Endpoint("localhost", 9092), port=50_001)
    return Call(3, 0, 7, None, peer, Instant(monotonic, 0), Connection())


def test_a_flood_of_malformed_requests_is_counted_and_told_in_few_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    watch = RequestWatch(metrics)
    for number in range(100):
        watch.malformed(call_at(number / 1000), ProtocolError("a frame of 5 bytes"))
    assert [record.getMessage() for record in caplog.records] == [
        "closing the connection of 10.0.0.9:50001: a frame of 5 bytes"
    ]
    watch.malformed(call_at(QUIET_SECONDS), ProtocolError("nonsense"))
    assert caplog.records[-1].getMessage().endswith("nonsense (99 like it before were not told)")
    assert "moldau_requests_malformed_total 101\n" in metrics.render()


def test_a_failure_of_ours_is_told_each_time_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    watch = RequestWatch(metrics)
    for _ in range(2):
        watch.failed(call_at(0.0), RuntimeError("oops"))
    assert [(record.levelno, bool(record.exc_info)) for record in caplog.records] == [
        (logging.ERROR, True)
    ] * 2
    assert "moldau_requests_failed_total 2\n" in metrics.render()
