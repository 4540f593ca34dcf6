"""`moldau start`: start a broker, and keep it running until it is told to stop."""

import argparse
import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

import moldau
from moldau.cli.frame import Parser, complain
from moldau.cli.options import add_settings_options, load_settings
from moldau.cli.target import DEFAULT_SERVER
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.listeners import ListenerSetting
from moldau.runtime.event_loop import run
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.node import Node, StartRefusedError
from moldau.runtime.process_limits import raise_open_files_limit

HOST = "localhost"
PORT = 9092
LOCAL = ("localhost", "127.0.0.1", "::1")

EXAMPLES = """examples:
  moldau start                              a broker on localhost:9092, data under ./data
  moldau start --memory --port 0            one that keeps nothing, on any free port
  moldau start --host 0.0.0.0               reachable from other machines
  moldau start --set num.partitions=3 --set log.retention.hours=24
  moldau start --config server.properties   with the settings of a Kafka broker

A line `ready HOST:PORT` on standard output says that clients are served. Ctrl-C stops the
broker in good order; a second one does not wait for clients."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau start",
        description="Start a broker that every Kafka client can use.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--port", type=int, help=f"port to listen on, 0 for any ({PORT})")
    parser.add_argument("--host", help=f"address to listen on, 0.0.0.0 for all ({HOST})")
    add_settings_options(parser)
    parser.add_argument(
        "--memory", action="store_true", help="keep everything in memory, and nothing after the end"
    )
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        help="serve metrics for Prometheus over HTTP there, and those that clients push",
    )
    return parser


def main(argv: Sequence[str]) -> int:
    """Start, wait, stop; return the exit code."""
    options = make_parser().parse_args(argv)
    loaded = load_settings(options, *_assignments(options))
    if loaded is None:
        return 2
    _log_to_stderr()
    raise_open_files_limit()
    return run(_run(loaded.static))


def _assignments(options: argparse.Namespace) -> list[str]:
    given = []
    if options.port is not None or options.host is not None:
        host = HOST if options.host is None else options.host
        port = PORT if options.port is None else options.port
        given.append(f"listeners=PLAINTEXT://{_bracketed(host)}:{port}")
    if options.memory:
        given.append("durability=memory")
    if options.metrics is not None:
        given.append(f"moldau.metrics.listener={options.metrics}")
    return given


async def _run(static: dict[str, str]) -> int:
    node = Node(static, MachineEnvironment(), grown=gc.freeze)
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            node.hurry()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    starting = asyncio.create_task(node.start())
    waiting = asyncio.create_task(stopping.wait())
    ends: list[asyncio.Future[Any]] = [waiting, node.failure]
    await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return 0
    try:
        starting.result()
    except StartRefusedError as error:
        complain(str(error))
        return 1
    print(_banner(node), flush=True)
    print(f"ready {_name(node.addresses[0])}", flush=True)
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if node.failure.done():
        complain(f"stopping: {node.failure.result()}")
    else:
        print("stopping", flush=True)
    await node.stop()
    return 1 if node.failure.done() else 0


def _banner(node: Node) -> str:
    address = _name(node.addresses[0])
    settings = node.settings
    others = "".join(f", {_name(each)}" for each in node.addresses[1:])
    lines = [
        f"Moldau {moldau.__version__} speaks Kafka's protocol on {address}{others}",
        (
            f"  data: {_place(settings)}, {'new cluster' if node.is_new else 'cluster'}"
            f" {node.cluster_id}"
        ),
    ]
    if node.metrics_address:
        lines.append(f"  metrics: http://{node.metrics_address}/metrics")
    if settings.advertised_listeners is None and node.addresses[0].host not in LOCAL:
        lines.append(
            "  each client is told the address that it connected to; behind NAT or a container's"
            " port mapping set advertised.listeners"
        )
    lines += ["Try it, in another terminal:", *(f"  {line}" for line in _things_to_try(address))]
    lines.append("Any Kafka client will do. Ctrl-C stops.")
    return "\n".join(lines)


def _things_to_try(address: str) -> list[str]:
    """Return lines that work as they are printed, in any shell."""
    there = "" if address == DEFAULT_SERVER else f" -b {address}"
    lines = [
        f"echo hello | moldau produce rivers{there}",
        f"moldau consume rivers --from-beginning --max-messages 1{there}",
        f"kafka-topics.sh --describe --topic rivers --bootstrap-server {address}",
    ]
    folder = Path(sys.executable).parent
    if which("kafka-topics.sh") is None and (folder / "kafka-topics.sh").exists():
        lines.insert(0, f'export PATH="{folder}:$PATH"')
    return lines


def _place(settings: BrokerSettings) -> str:
    if settings.durability == "memory":
        return "in memory only"
    return ", ".join(settings.log_directories)


def _name(address: ListenerSetting) -> str:
    return f"{_bracketed(address.host or HOST)}:{address.port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Lines(logging.Formatter):
    """Time, level if it matters, and the text."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = f"{moment} {level}{record.getMessage()}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
