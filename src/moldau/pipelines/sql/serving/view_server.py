"""Views over HTTP, without a SQL server around them: for an app that runs."""

import socket
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.definitions import folded
from moldau.pipelines.sql.lookups.kept_views import KeptViews
from moldau.pipelines.sql.lookups.view_keys import key_of
from moldau.pipelines.sql.ports import ViewRows
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.sql.serving.http_api import LOOPBACK
from moldau.pipelines.sql.serving.json_lines import plain
from moldau.pipelines.views.store_file import Say

HOST: Final = "127.0.0.1"


class ViewServer:
    """Follows tables, and answers `GET /views/TABLE?key=...` on this machine."""

    def __init__(
        self,
        tables: Iterable[Relation],
        folder: Path,
        config: Mapping[str, object],
        port: int,
        say: Say,
    ) -> None:
        self._tables = {folded(each.name): each for each in tables}
        self._views = KeptViews(folder, config, say)
        try:
            self._socket = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            raise PipelineError(f"port {port}: {error}: choose another, or 0 for any") from error
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}"
        app = Starlette(
            routes=[Route("/views/{table}", self._view, methods=["GET"])],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK])],
        )
        config_of_http = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False
        )
        self._http = uvicorn.Server(config_of_http)
        self._thread = threading.Thread(
            target=lambda: self._http.run(sockets=[self._socket]), name="moldau-views", daemon=True
        )

    def __enter__(self) -> Self:
        self._views.keep(list(self._tables.values()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.should_exit = True
        self._thread.join()
        self._views.close()
        self._socket.close()

    async def _view(self, request: Request) -> Response:
        table = self._tables.get(folded(request.path_params["table"]))
        if table is None:
            names = ", ".join(each.name for each in self._tables.values())
            return _refused(404, f"there is no such table; there are {names}")
        query = request.query_params
        if "key" not in query:
            return _refused(400, "a key is missing: add ?key=...")
        try:
            key = key_of(table, query["key"])
            found = await anyio.to_thread.run_sync(
                self._views.get, table, key, query.get("start"), query.get("until")
            )
        except PipelineError as error:
            return _refused(400, str(error))
        return JSONResponse(as_json(found))


def as_json(found: ViewRows) -> dict[str, object]:
    """Return an answer as HTTP has it."""
    return {
        "columns": [{"name": each.name, "type": each.type} for each in found.columns],
        "rows": plain(list(found.rows)),
        "offsets": {str(partition): each for partition, each in found.offsets.items()},
        "caught_up": found.is_caught_up,
    }


def _refused(status: int, text: str) -> Response:
    return JSONResponse({"error": {"message": text}}, status)
