"""Which server a shell talks to: that which it is told, that of the cluster, or one of its own."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from moldau.cli.sql_parts import is_cluster_named, setup_of
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.assembling import Setup, make_ports
from moldau.pipelines.sql.http_client import ServerClient
from moldau.pipelines.sql.ownership import find_owner
from moldau.pipelines.sql.server import PORT, SqlServer

HEALTH_SECONDS_MAX: Final = 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and whether it ends with this process."""

    client: ServerClient
    is_inside: bool


@contextmanager
def open_target(options: argparse.Namespace) -> Iterator[Target]:
    """Yield the server to talk to; one that is made here is gone afterwards."""
    if options.server is not None:
        client = ServerClient(options.server)
        client.health()
        yield Target(client, is_inside=False)
        return
    setup = setup_of(options)
    found = _find(setup, is_anywhere=not is_cluster_named(options))
    if found is not None:
        _say(f"connected to the server at {found.address}")
        yield Target(found, is_inside=False)
        return
    with SqlServer(
        setup.servers, lambda: make_ports(setup), service=setup.service, port=0, say=_say
    ) as server:
        _say(f"no server runs: this shell has one inside, for {setup.servers}")
        yield Target(ServerClient(server.address), is_inside=True)


def _find(setup: Setup, *, is_anywhere: bool) -> ServerClient | None:
    """Return the server of this service; `is_anywhere`: of whichever cluster, at the usual port."""
    if is_anywhere and (client := _alive(f"http://127.0.0.1:{PORT}", setup.service)) is not None:
        return client
    owner = find_owner(setup.servers, setup.service)
    return None if owner is None else _alive(owner.address, setup.service)


def _alive(address: str, service: str) -> ServerClient | None:
    client = ServerClient(address)
    try:
        health = client.health(HEALTH_SECONDS_MAX)
    except PipelineError:
        return None
    # ksqlDB's server has the same port.
    return client if health.get("service") == service else None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
