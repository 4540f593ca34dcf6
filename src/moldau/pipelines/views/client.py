"""Asks a server for what its views have of a key."""

import http.client
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from moldau.pipelines.errors import PipelineError

CONNECT_SECONDS_MAX: Final = 5.0


class ServerUnreachableError(PipelineError):
    """No server answers at an address."""


class ServerRefusedError(PipelineError):
    """A server says that something is wrong; the text is its own."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "no reason was given")))
        self.error = error
        """With `statement`, `line` and `column`, where they are known."""


class NotThereError(ServerRefusedError):
    """A server has no table of this name."""


class ViewClient:
    """Speaks to one server; each call has a connection of its own."""

    def __init__(self, address: str) -> None:
        """Take an address such as `http://127.0.0.1:8088`; the scheme may be missing."""
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme != "http" or not parts.hostname:
            raise PipelineError(f"{address}: an address is http://host:port")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.hostname
        self._port = parts.port or 80

    def views(self, seconds_max: float = CONNECT_SECONDS_MAX) -> Sequence[Mapping[str, Any]]:
        """Return the tables that have views: name, topic, and the key's columns with types."""
        found = self._get("/views", seconds_max).get("views")
        return found if isinstance(found, list) else ()

    def view(
        self,
        table: str,
        key: str,
        start: str | None = None,
        until: str | None = None,
        *,
        has_values: bool = False,
    ) -> Mapping[str, Any]:
        """Return what a server's view has of a key; `has_values` has the records' values, too."""
        values = "true" if has_values else None
        asked = {"key": key, "start": start, "until": until, "values": values}
        given = {name: value for name, value in asked.items() if value is not None}
        return self._get(f"/views/{quote(table, safe='')}?{urlencode(given)}", None)

    def _get(self, path: str, seconds_max: float | None) -> Mapping[str, Any]:
        with closing(self._connect(seconds_max or CONNECT_SECONDS_MAX)) as connection:
            try:
                if seconds_max is None and connection.sock is not None:
                    connection.sock.settimeout(None)
                connection.request("GET", path)
                response = connection.getresponse()
                if response.status != http.client.OK:
                    raise refusal(response)
                found = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise ServerUnreachableError(
                    f"what is at {self.address} does not answer as a server: {text_of(error)}"
                ) from error
        if not isinstance(found, dict):
            raise ServerUnreachableError(f"what is at {self.address} is no server of ours")
        return found

    def _connect(self, seconds_max: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds_max)
        try:
            connection.connect()
        except OSError as error:
            raise ServerUnreachableError(
                f"no server answers at {self.address}: {text_of(error)}"
            ) from error
        return connection


def refusal(response: http.client.HTTPResponse) -> ServerRefusedError:
    """Return what a server refuses, in its own words."""
    is_missing = response.status == http.client.NOT_FOUND
    kind = NotThereError if is_missing else ServerRefusedError
    body = response.read()
    try:
        return kind(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return kind({"message": f"HTTP {response.status} {response.reason}"})


def text_of(error: Exception) -> str:
    """Return what went wrong on the way."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
