"""The HTTP API: statements in, lines of JSON out. Described in `openapi.py`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from moldau.client.errors import ClientError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.ownership import ServiceOwner
from moldau.pipelines.sql.lookups.view_keys import key_of
from moldau.pipelines.sql.relations import RelationKind
from moldau.pipelines.sql.service import Service
from moldau.pipelines.sql.serving import openapi, view_json
from moldau.pipelines.sql.serving.streaming import STATEMENTS_MAX, Executions, LinesResponse
from moldau.pipelines.sql.session import Session

BODY_BYTES_MAX: Final = 1 << 20
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class BadRequestError(Exception):
    """A request that makes no sense, and the status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What `/health` tells."""

    service: str
    owner: ServiceOwner


def make_app(
    service: Service,
    identity: ServerIdentity,
    executions: Executions,
    *,
    hosts: Iterable[str] = LOOPBACK,
    routes: Iterable[BaseRoute] = (),
) -> Starlette:
    """Return the API, with further routes.

    `hosts` are the names by which clients may call the server: a page in a browser, whose name an
    attacker has made to point to this machine, is none of them.
    """
    api = _Api(service, identity, executions)
    return Starlette(
        routes=[
            Route("/statements", api.execute, methods=["POST"]),
            Route("/views", api.views, methods=["GET"]),
            Route("/views/{table}", api.view, methods=["GET"]),
            Route("/health", api.health, methods=["GET"]),
            Route("/openapi.json", _openapi, methods=["GET"]),
            *routes,
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts], www_redirect=False)],
        exception_handlers={
            BadRequestError: _refuse,
            PipelineError: _refuse,
            ClientError: _refuse,
            HTTPException: _refuse,
        },
    )


async def _refuse(_request: Request, error: Exception) -> Response:
    match error:
        case BadRequestError():
            status, text = error.status, str(error)
        case HTTPException():
            status, text = error.status_code, error.detail
        case _:
            status, text = 400, str(error)
    return JSONResponse({"error": {"message": text}}, status)


async def _openapi(_request: Request) -> Response:
    return JSONResponse(openapi.describe())


class _Api:
    def __init__(self, service: Service, identity: ServerIdentity, executions: Executions) -> None:
        self._service = service
        self._identity = identity
        self._executions = executions

    async def execute(self, request: Request) -> Response:
        body = await _read(request)
        sql, settings = body.get("sql"), body.get("settings", {})
        if not isinstance(sql, str) or not _is_texts(settings) or body.keys() - _FIELDS:
            raise BadRequestError(400, 'the body is {"sql": "...", "settings": {...}}, all texts')
        session = Session.of(settings)
        if self._executions.is_full:
            raise BadRequestError(503, f"{STATEMENTS_MAX} requests are being executed: try again")
        return LinesResponse(self._service, sql, session, self._executions)

    async def view(self, request: Request) -> Response:
        name = request.path_params["table"]
        relation = self._service.snapshot.find(name)
        if relation is None:
            raise BadRequestError(404, f"there is no table {name}")
        query = request.query_params
        if "key" not in query:
            raise BadRequestError(400, "a key is missing: add ?key=...")
        key, start, until = key_of(relation, query["key"]), query.get("start"), query.get("until")
        found = await anyio.to_thread.run_sync(self._service.view, relation, key, start, until)
        return JSONResponse(view_json.answer(found, has_values=query.get("values") == "true"))

    async def views(self, _request: Request) -> Response:
        tables = self._service.snapshot.relations(RelationKind.TABLE)
        return JSONResponse(view_json.list_views(tables))

    async def health(self, _request: Request) -> Response:
        owner = self._identity.owner
        queries = self._service.snapshot.queries.values()
        return JSONResponse(
            {
                "service": self._identity.service,
                "host": owner.host,
                "pid": owner.pid,
                "since_ms": owner.since_ms,
                "is_owner": self._service.is_open,
                "queries": sum(each.is_running for each in queries),
            }
        )


_FIELDS: Final = {"sql", "settings"}


async def _read(request: Request) -> Mapping[str, Any]:
    # No other page's form can send this type, so that none can have statements executed.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadRequestError(415, "send the statements as application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise BadRequestError(413, f"the body is larger than {BODY_BYTES_MAX} bytes")
    try:
        found = json.loads(body)
    except ValueError as error:
        raise BadRequestError(400, f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadRequestError(400, "the body is not a JSON object")
    return found


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
