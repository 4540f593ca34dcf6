"""The views of a running app's tables, over HTTP."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, complain
from moldau.cli.sql_parts import check_installed
from moldau.client.admin import Admin
from moldau.client.errors import ClientError

if TYPE_CHECKING:
    from moldau.pipelines.streams.app import App


@contextmanager
def serve_views(app: "App", port: int | None) -> Iterator[None]:
    """Answer by key what the app reads and writes, for `moldau pipeline get`; say where.

    Without a port nobody has asked for it, and what is missing for it stops no pipeline.
    """
    with ExitStack() as stack:
        try:
            words = _serve(app, port, stack)
        except (CommandError, ClientError, OSError) as error:
            if port is not None:
                raise
            words = f"none, as {error}"
        if words is not None:
            print(f"views: {words}", file=sys.stderr, flush=True)
        yield


def _serve(app: "App", port: int | None, stack: ExitStack) -> str | None:
    """Return where they are, None if there is nothing to ask."""
    check_installed()
    from moldau.pipelines.sql.serving.view_server import ViewServer
    from moldau.pipelines.sql.spark.app_tables import tables_of
    from moldau.pipelines.views.announcing import announced

    tables = tables_of(app)
    if not tables:
        if port is None:
            return None
        raise CommandError(
            f"--views-port: app {app.name} has no table, and writes nothing with a key"
        )
    with Admin(config=dict(app.client_config)) as admin:
        cluster = admin.describe_cluster().cluster_id
    # Beside the checkpoints, which are called as queries are.
    folder = app.checkpoints.local_folder / ".views"
    server = stack.enter_context(ViewServer(tables, folder, app.client_config, port or 0, complain))
    stack.enter_context(announced(server.address, cluster))
    names = ", ".join(dict.fromkeys(each.topic for each in tables.values()))
    return f"{server.address}/views/TABLE?key=... of {names}"
