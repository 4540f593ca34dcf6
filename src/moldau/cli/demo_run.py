"""Runs the demo: starts a broker, feeds the shop's topics, and shows what the pipeline makes."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.cli.demo_next import FILE, next_steps, sql_command
from moldau.cli.demo_screen import HEADS, Screen
from moldau.cli.demo_shop import Shop, ShopEvent
from moldau.cli.frame import CommandError
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.pipelines.supervision.app_file import load_app
from moldau.pipelines.supervision.failures import failure_of
from moldau.pipelines.supervision.signals import stop_on_signals

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

INPUTS: Final = ("orders", "users", "clicks")
TICK_SECONDS: Final = 0.25
PAST: Final = timedelta(minutes=10)
"""What has happened before the demo begins, so that there are minutes that are over."""
PAST_STEP: Final = timedelta(seconds=2)
FIRST_SECONDS_MAX: Final = 300.0
"""A machine that has shown nothing by then will not."""


def run_demo(seconds: float) -> None:
    """Show the demo for so long, counted from its first results."""
    stopping = threading.Event()
    with ExitStack() as stack:
        servers = stack.enter_context(start_broker())
        print(f"A broker runs on {servers}, in memory. Spark is starting ...", flush=True)
        folder = stack.enter_context(TemporaryDirectory(prefix="moldau-demo-"))
        with run_with(RunOptions(bootstrap=servers, checkpoints=folder)):
            app = load_app(str(FILE))
        with Admin(servers) as admin:
            for topic in INPUTS:
                admin.create_topic(topic, 1)
        # Spark has its handlers by now, and these take their place.
        stack.enter_context(stop_on_signals(stopping.set))
        feeder = threading.Thread(target=feed, args=(servers, stopping), name="moldau-demo-shop")
        feeder.start()
        stack.callback(feeder.join)
        stack.callback(stopping.set)
        stack.callback(app.stop)
        queries = app.start()
        print(f"{len(queries)} queries run. The first results take a moment ...", flush=True)
        print(f"Meanwhile, in another terminal:\n  {_question(servers)}", flush=True)
        _show(servers, queries, seconds, stopping)
    print(next_steps())


def _question(servers: str) -> str:
    """Return a line to type: it works as it is for as long as the demo runs."""
    return f'{sql_command(servers)} -e "SELECT user, sum(amount) FROM orders GROUP BY user"'


@contextmanager
def start_broker() -> Iterator[str]:
    """Start a broker that keeps nothing, in a process of its own; yield where it is."""
    command = [sys.executable, "-m", "moldau.cli", "start", "--memory", "--port", "0"]
    # It is for us to stop it: Ctrl-C, which is for all processes of a terminal, is not for it.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("ready "):
                    yield line.split()[1]
                    return
            raise CommandError("the broker has not started: `moldau start --memory` says why")
        finally:
            process.terminate()


def feed(servers: str, stopping: threading.Event) -> None:
    """Let things happen in the shop until it is enough: in its last minutes first, then now."""
    shop = Shop(random.Random())
    with Producer(servers) as producer:
        _send(producer, shop.open())
        at = datetime.now(UTC) - PAST
        while at < datetime.now(UTC):
            _send(producer, shop.happen(at))
            at += PAST_STEP
        while not stopping.wait(TICK_SECONDS):
            # As long as the clock is not set back: then the shop waits until it is as late again.
            at = max(at, datetime.now(UTC))
            _send(producer, shop.happen(at))


def _send(producer: Producer, events: Iterable[ShopEvent]) -> None:
    for event in events:
        key = None if event.key is None else event.key.encode()
        producer.send(event.topic, json.dumps(event.value).encode(), key)


def _show(
    servers: str, queries: "list[StreamingQuery]", seconds: float, stopping: threading.Event
) -> None:
    screen = Screen()
    began = now = time.monotonic()
    first_until, until = began + FIRST_SECONDS_MAX, None
    with Consumer(
        servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0) for topic in HEADS])
        while not stopping.is_set() and (until is None or now < until):
            found = consumer.poll(timeout_ms=500)
            screen.add([(each.topic, json.loads(each.value or b"{}")) for each in found])
            _check(queries)
            now = time.monotonic()
            if until is None and screen.is_full:
                until = now + seconds
            elif until is None and now > first_until:
                raise CommandError(f"no results within {FIRST_SECONDS_MAX:.0f} s: is it very busy?")
            if until is None:
                left = f"starting for {now - began:.0f} s"
            else:
                left = f"{max(0.0, until - now):.0f} s left"
            screen.draw(
                f"moldau demo on {servers}: {left}, Ctrl-C ends it\n"
                f"Meanwhile, in another terminal: {sql_command(servers)}"
            )


def _check(queries: "list[StreamingQuery]") -> None:
    for query in queries:
        if (error := query.exception()) is not None:
            raise CommandError(f"query {query.name}: {failure_of(error).line}")
