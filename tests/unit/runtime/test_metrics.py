import asyncio
import time

from moldau.runtime.event_loop import run
from moldau.runtime.loop_delay import LoopDelay
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.metrics import Histogram, Metrics
from moldau.runtime.metrics_server import MetricsServer


def test_the_text_is_prometheus() -> None:
    metrics = Metrics()
    requests = metrics.counter("requests_total", "Requests.", api="Fetch")
    requests.value += 3
    metrics.gauge("free_bytes", "Free.", lambda: 7, path='a"b\\c\n')
    assert metrics.render() == (
        "# HELP free_bytes Free.\n"
        "# TYPE free_bytes gauge\n"
        'free_bytes{path="a\\"b\\\\c\\n"} 7\n'
        "# HELP requests_total Requests.\n"
        "# TYPE requests_total counter\n"
        'requests_total{api="Fetch"} 3\n'
    )


def test_a_histogram_counts_what_is_below_each_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 3.0):
        histogram.observe(value)
    histogram.observe(0.5, 2)
    assert list(histogram.samples()) == [
        ("_bucket", 'le="0.1"', 2),
        ("_bucket", 'le="1.0"', 4),
        ("_bucket", 'le="+Inf"', 5),
        ("_sum", "", 4.15),
        ("_count", "", 5),
    ]


def test_a_table_is_read_when_somebody_looks() -> None:
    metrics = Metrics()
    sizes = {"a": 1, "b": 2}
    metrics.table(
        "log_bytes", "gauge", "Size.", lambda: [(f'topic="{t}"', n) for t, n in sizes.items()]
    )
    assert metrics.render().endswith('log_bytes{topic="a"} 1\nlog_bytes{topic="b"} 2\n')
    del sizes["a"]
    assert 'topic="a"' not in metrics.render()
    assert 'topic="b"' in metrics.render()


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_metrics_over_http() -> None:
    async def check() -> None:
        metrics = Metrics()
        metrics.counter("requests_total", "Requests.")
        server = MetricsServer(metrics, time.perf_counter)
        port = await server.start("127.0.0.1", 0)
        answer = await ask(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
        assert f"Content-Length: {len(body)}".encode() in head
        assert body.decode() == metrics.render()
        assert (await ask(port, b"HEAD /metrics?x=1 HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n")
        assert b" 404 " in await ask(port, b"GET / HTTP/1.1\r\n\r\n")
        assert b" 405 " in await ask(port, b"POST /metrics HTTP/1.1\r\n\r\n")
        assert await ask(port, bytes(20_000)) == b""
        await server.close()

    run(check())


def test_the_delay_of_the_loop_is_measured() -> None:
    async def check() -> None:
        histogram = Histogram()
        delay = LoopDelay(histogram, MachineEnvironment())
        async with asyncio.timeout(10):
            while histogram.count < 2:
                await asyncio.sleep(0.01)
        delay.close()

    run(check())
