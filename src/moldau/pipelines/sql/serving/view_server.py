"""Views over HTTP, without a SQL server around them: for an app that runs."""

import os
import socket
import threading
from collections import Counter
from collections.abc import Mapping
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
from moldau.pipelines.sql.serving import view_json
from moldau.pipelines.sql.serving.http_api import LOOPBACK
from moldau.pipelines.views.store_file import Say

HOST: Final = "127.0.0.1"


class ViewServer:
    """Answers `GET /views/TABLE?key=...` on this machine.

    `tables` are found by these names, in any case. A table is followed from when it is first asked
    for: who runs an app, and asks nothing, pays for a thread that waits.
    """

    def __init__(
        self,
        tables: Mapping[str, Relation],
        folder: Path,
        config: Mapping[str, object],
        port: int,
        say: Say,
    ) -> None:
        """Listen, at another port if this one is taken."""
        self._tables = _by_name(tables)
        self._views = KeptViews(folder, config, say)
        self._following = threading.Lock()
        self._followed: list[Relation] = []
        self._socket = _listen(port, say)
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}"
        app = Starlette(
            routes=[
                Route("/views", self._list, methods=["GET"]),
                Route("/views/{table}", self._view, methods=["GET"]),
            ],
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
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.should_exit = True
        self._thread.join()
        self._views.close()
        self._socket.close()

    async def _list(self, _request: Request) -> Response:
        # A table may have two names.
        return JSONResponse(view_json.list_views(dict.fromkeys(self._tables.values())))

    async def _view(self, request: Request) -> Response:
        table = self._tables.get(folded(request.path_params["table"]))
        if table is None:
            names = ", ".join(dict.fromkeys(each.name for each in self._tables.values()))
            return _refused(404, f"there is no such table; there are {names}")
        query = request.query_params
        if "key" not in query:
            return _refused(400, "a key is missing: add ?key=...")
        try:
            key = key_of(table, query["key"])
            found = await anyio.to_thread.run_sync(
                self._get, table, key, query.get("start"), query.get("until")
            )
        except PipelineError as error:
            return _refused(400, str(error))
        return JSONResponse(view_json.answer(found, has_values=query.get("values") == "true"))

    def _get(self, table: Relation, key: object, start: str | None, until: str | None) -> ViewRows:
        with self._following:
            if table not in self._followed:
                self._followed.append(table)
                self._views.keep(self._followed)
        return self._views.get(table, key, start, until)


def _by_name(tables: Mapping[str, Relation]) -> dict[str, Relation]:
    """Return tables by names without case, a table's own before others.

    Topics have case: of two that differ in nothing else neither is there, lest it be the wrong one.
    """
    counts = Counter(folded(each.name) for each in set(tables.values()))
    sound = {name: each for name, each in tables.items() if counts[folded(each.name)] == 1}
    found = {folded(each.name): each for each in sound.values()}
    for name, each in sound.items():
        found.setdefault(folded(name), each)
    return found


def _listen(port: int, say: Say) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OverflowError as error:
        raise PipelineError(f"port {port}: {error}") from error
    except OSError as error:
        # Python adds the address to the words of the system.
        words = os.strerror(error.errno or 0)
        say(f"views: port {port}: {words}: taking another")
        return socket.create_server((HOST, 0))


def _refused(status: int, text: str) -> Response:
    return JSONResponse({"error": {"message": text}}, status)
