"""What `moldau pipeline get` does: a key's row, of somebody's view or from the topic itself."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from moldau.cli.frame import FAILED, FINE
from moldau.cli.printing import ProgressLine, print_json
from moldau.cli.sql_discovery import find_server
from moldau.cli.sql_table import RowTable
from moldau.cli.target import DEFAULT_SERVER, client_config
from moldau.client.admin import Admin
from moldau.client.errors import KafkaError
from moldau.pipelines.sql.catalog.definitions import RELATION, folded, read_definition
from moldau.pipelines.sql.catalog.topic import CatalogTopic, topic_name
from moldau.pipelines.sql.lookups.view_keys import key_of
from moldau.pipelines.sql.plain_values import plain
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.views.announcing import find_addresses
from moldau.pipelines.views.client import NotThereError, ServerUnreachableError, ViewClient
from moldau.pipelines.views.key_shape import KeyShape
from moldau.pipelines.views.scanning import scan_key


def get_row(options: argparse.Namespace) -> int:
    """Print a key's rows; return the exit code: 1 if there are none."""
    found = _ask(options)
    if isinstance(found, str):
        columns, rows = _scan(options, found)
    else:
        columns, rows = found["columns"], found["rows"]
    if options.json:
        for row in rows:
            print_json({each["name"]: cell for each, cell in zip(columns, row, strict=True)})
    elif rows:
        print("\n".join(RowTable(columns, is_live=False).lines(rows)))
    else:
        _say(f"{options.table} has no row of key {options.key}")
    return FINE if rows else FAILED


def _ask(options: argparse.Namespace) -> Mapping[str, Any] | str:
    """Return what a view has, or why there is none."""
    if options.server is not None:
        return _ask_one(ViewClient(options.server), options)
    reason = "no server runs"
    for client in _servers(options):
        # One that was killed, or has no such table, does not hide another.
        with suppress(ServerUnreachableError):
            try:
                return _ask_one(client, options)
            except NotThereError:
                reason = "no server has a view of it"
    return reason


def _ask_one(client: ViewClient, options: argparse.Namespace) -> Mapping[str, Any]:
    found = client.view(options.table, options.key, options.begin, options.until)
    state = "caught up" if found["caught_up"] else "NOT caught up"
    offsets = ", ".join(f"{place}: {each}" for place, each in found["offsets"].items())
    _say(f"view at {client.address}, {state}; offsets by partition {{{offsets}}}")
    return found


def _servers(options: argparse.Namespace) -> Iterator[ViewClient]:
    """Yield who may have the view: the SQL server, then what runs on this machine."""
    # As it was typed nowhere, it may be another's: then the usual port is asked first.
    is_anywhere = options.bootstrap_server == DEFAULT_SERVER
    server = find_server(options.bootstrap_server, options.service, is_anywhere=is_anywhere)
    if server is not None:
        yield server
    config = {"bootstrap.servers": options.bootstrap_server, **client_config(options)}
    for address in find_addresses(config):
        if server is None or address != server.address:
            yield ViewClient(address)


def _scan(
    options: argparse.Namespace, reason: str
) -> tuple[Sequence[Mapping[str, str]], Sequence[Sequence[Any]]]:
    servers = options.bootstrap_server
    table = _declared(servers, options.service, options.table)
    name = options.table if table is None else table.topic
    where = (
        "all of topic" if table is not None and _is_windowed(table) else "the key's partition of"
    )
    _say(f"{reason}: reading {where} {name}")
    progress = ProgressLine()
    if table is None:
        key = Column("key", "string", is_key=True)
        table = Relation(name, RelationKind.TABLE, name, (key, Column("value", "string")), "string")
    answers = scan_key(
        {"bootstrap.servers": servers, **client_config(options)},
        table.topic,
        KeyShape({each.name: each.type for each in table.keys}),
        key_of(table, options.key),
        options.begin,
        options.until,
        lambda done, total: progress(f"{done:,} of {total:,} records read"),
    )
    progress.clear()
    from moldau.cli.sql_parts import check_installed

    check_installed()
    from moldau.pipelines.sql.lookups.view_rows import RowReader

    reader = RowReader(table)
    columns = [{"name": each.name, "type": each.type} for each in reader.columns]
    return columns, [[plain(cell) for cell in reader.read(row)] for row in answers.rows]


def _is_windowed(table: Relation) -> bool:
    return KeyShape({each.name: each.type for each in table.keys}).is_windowed


def _declared(servers: str, service: str, name: str) -> Relation | None:
    """Return a table as the service's catalog has it; None if there is no such thing."""
    catalog = topic_name(service)
    with Admin(servers) as admin:
        if isinstance(admin.describe_topics([catalog])[catalog], KafkaError):
            return None
    changes = dict(CatalogTopic(servers, service).read())
    value = changes.get(RELATION + folded(name))
    return None if value is None else read_definition(value).relation


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
