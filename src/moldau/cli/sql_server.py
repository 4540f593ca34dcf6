"""What `moldau sql server` does, once the command line is read."""

import argparse
import threading

from moldau.cli.frame import FAILED, FINE, complain
from moldau.cli.sql_parts import setup_of, split_address
from moldau.pipelines.sql.assembling import make_ports
from moldau.pipelines.sql.serving.server import SqlServer
from moldau.pipelines.supervision.signals import stop_on_signals

LOOK_SECONDS = 1.0
"""How often it is looked whether the server still has its service."""


def run_server(options: argparse.Namespace) -> int:
    """Serve until somebody ends it; return the exit code."""
    host, port = split_address(options.listen)
    setup = setup_of(options)
    stopping = threading.Event()
    server = SqlServer(
        setup.servers,
        lambda: make_ports(setup),
        service=setup.service,
        host=host,
        port=port,
        say=complain,
    )
    with stop_on_signals(stopping.set), server:
        print(f"service {setup.service} of the cluster at {setup.servers}", flush=True)
        print(f"ready {server.address}", flush=True)
        reason = None
        while not stopping.is_set() and reason is None:
            # A wait without an end would hear of no signal.
            reason = server.wait(LOOK_SECONDS)
        print("stopping", flush=True)
    if reason is not None:
        complain(reason)
        return FAILED
    return FINE
