"""Which server runs for a cluster, if one does."""

from typing import Final

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.ownership import find_owner
from moldau.pipelines.sql.serving.http_client import ServerClient

HEALTH_SECONDS_MAX: Final = 1.0
USUAL: Final = "http://127.0.0.1:8088"


def find_server(servers: str, service: str, *, is_anywhere: bool) -> ServerClient | None:
    """Return the server of this service; `is_anywhere`: of whichever cluster, at the usual port."""
    if is_anywhere and (client := _alive(USUAL, service)) is not None:
        return client
    owner = find_owner(servers, service)
    return None if owner is None else _alive(owner.address, service)


def _alive(address: str, service: str) -> ServerClient | None:
    client = ServerClient(address)
    try:
        health = client.health(HEALTH_SECONDS_MAX)
    except PipelineError:
        return None
    # ksqlDB's server has the same port.
    return client if health.get("service") == service else None
