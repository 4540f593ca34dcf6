"""Whom a shell asks: the server that it is told, that of the cluster, or a service of its own."""

import argparse
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moldau.cli.sql_discovery import find_server
from moldau.cli.sql_parts import is_cluster_named, setup_of
from moldau.cli.sql_script import Script
from moldau.pipelines.sql.asking_service import asking_service
from moldau.pipelines.sql.assembling import Setup, make_ports
from moldau.pipelines.sql.inside_client import InsideClient
from moldau.pipelines.sql.serving.http_client import ServerClient


@dataclass(frozen=True, slots=True)
class SqlTarget:
    """A server, or a service in this process."""

    client: ServerClient | InsideClient
    owns_queries: bool = False
    """Whether queries rest when this process ends."""

    @property
    def resting_queries(self) -> int:
        """How many queries rest when this process ends."""
        if not isinstance(self.client, InsideClient) or not self.owns_queries:
            return 0
        return self.client.queries

    def execute(self, script: Script, settings: Mapping[str, str]) -> Generator[Mapping[str, Any]]:
        """Yield answers as they come; a service of this process takes what is parsed already."""
        if isinstance(self.client, InsideClient) and script.statements is not None:
            return self.client.execute(script.statements, settings)
        return self.client.execute(script.text, settings)


@contextmanager
def open_target(options: argparse.Namespace, *, only_asks: bool = False) -> Iterator[SqlTarget]:
    """Yield whom to ask; what is made here is gone afterwards.

    A text that only asks needs no server: queries are not started for a second, and no other
    process finds one that is about to end.
    """
    if options.server is not None:
        client = ServerClient(options.server)
        client.health()
        yield SqlTarget(client)
        return
    setup = setup_of(options)
    is_anywhere = not is_cluster_named(options)
    found = find_server(setup.servers, setup.service, is_anywhere=is_anywhere)
    if found is not None:
        _say(f"connected to the server at {found.address}")
        yield SqlTarget(found)
        return
    with _serve_inside(setup, only_asks=only_asks) as inside:
        yield SqlTarget(inside, owns_queries=not only_asks)


@contextmanager
def _serve_inside(setup: Setup, *, only_asks: bool) -> Iterator[InsideClient]:
    said = f"no server runs: this shell has one inside, for {setup.servers}"
    if only_asks:
        with asking_service(setup.servers, lambda: make_ports(setup), setup.service) as service:
            _say(said)
            yield InsideClient(service)
        return
    from moldau.pipelines.sql.serving.server import SqlServer

    # Others find it, and ask it by HTTP.
    with SqlServer(
        setup.servers, lambda: make_ports(setup), service=setup.service, port=0, say=_say
    ) as server:
        _say(said)
        yield InsideClient(server.service)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
