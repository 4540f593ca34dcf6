"""The views of a running app's tables, over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, complain
from moldau.cli.sql_parts import check_installed

if TYPE_CHECKING:
    from moldau.pipelines.streams.app import App


@contextmanager
def serve_views(app: "App", port: int) -> Iterator[str]:
    """Keep a view of each table, and yield where they answer."""
    check_installed()
    from moldau.pipelines.sql.relations import Column, Kind, Relation
    from moldau.pipelines.sql.serving.view_server import ViewServer

    if not app.tables:
        raise CommandError(f"--views-port: app {app.name} has no table: app.table makes one")
    relations = [
        Relation(
            table.topic,
            Kind.TABLE,
            table.topic,
            (
                *(Column(e.name, e.dataType.simpleString(), is_key=True) for e in table.key.fields),
                *(Column(e.name, e.dataType.simpleString()) for e in table.value.fields),
            ),
            table.format,
        )
        for table in app.tables
    ]
    # Beside the checkpoints, which are called as queries are.
    folder = app.checkpoints.local_folder / ".views"
    with ViewServer(relations, folder, app.client_config, port, complain) as server:
        yield server.address
