"""Which server a shell talks to: that which it is told, that of the cluster, or one of its own."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moldau.cli.sql_discovery import find_server
from moldau.cli.sql_parts import is_cluster_named, setup_of
from moldau.pipelines.sql.assembling import make_ports
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.pipelines.sql.serving.server import SqlServer


@dataclass(frozen=True, slots=True)
class SqlTarget:
    """A server, and whether queries that it runs rest when this process ends."""

    client: ServerClient
    is_inside: bool


@contextmanager
def open_target(options: argparse.Namespace, *, only_asks: bool = False) -> Iterator[SqlTarget]:
    """Yield the server to talk to; one that is made here is gone afterwards.

    One for a text that only asks has no service: queries are not started for a second, and nobody
    finds a server that is about to end.
    """
    if options.server is not None:
        client = ServerClient(options.server)
        client.health()
        yield SqlTarget(client, is_inside=False)
        return
    setup = setup_of(options)
    is_anywhere = not is_cluster_named(options)
    found = find_server(setup.servers, setup.service, is_anywhere=is_anywhere)
    if found is not None:
        _say(f"connected to the server at {found.address}")
        yield SqlTarget(found, is_inside=False)
        return
    with SqlServer(
        setup.servers,
        lambda: make_ports(setup),
        service=setup.service,
        port=0,
        is_owner=not only_asks,
        say=_say,
    ) as server:
        _say(f"no server runs: this shell has one inside, for {setup.servers}")
        yield SqlTarget(ServerClient(server.address), is_inside=not only_asks)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
