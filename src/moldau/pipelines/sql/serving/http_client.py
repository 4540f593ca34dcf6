"""The shell's side of the HTTP API: statements to a server, and its answers as they come."""

import http.client
import json
from collections.abc import Generator, Mapping
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


class ServerClient:
    """Speaks to one server; each call has a connection of its own."""

    def __init__(self, address: str) -> None:
        """Take an address such as `http://127.0.0.1:8088`; the scheme may be missing."""
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme != "http" or not parts.hostname:
            raise PipelineError(f"{address}: an address is http://host:port")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.hostname
        self._port = parts.port or 80

    def health(self, seconds_max: float = CONNECT_SECONDS_MAX) -> Mapping[str, Any]:
        """Return what a server tells of itself."""
        return self._get("/health", seconds_max)

    def view(
        self, table: str, key: str, start: str | None = None, until: str | None = None
    ) -> Mapping[str, Any]:
        """Return what a server's view has of a key."""
        asked = {"key": key, "start": start, "until": until}
        given = {name: value for name, value in asked.items() if value is not None}
        return self._get(f"/views/{quote(table, safe='')}?{urlencode(given)}", None)

    def execute(
        self, sql: str, settings: Mapping[str, str] | None = None
    ) -> Generator[Mapping[str, Any]]:
        """Yield answers as they come; whoever closes the iterator cancels what is running.

        `ServerRefusedError` when a statement fails; those before it are done.
        """
        body = json.dumps({"sql": sql, "settings": dict(settings or {})})
        headers = {"Content-Type": "application/json"}
        # The first row of a query may be long in coming: only the connection has a deadline.
        with closing(self._connect(CONNECT_SECONDS_MAX)) as connection:
            try:
                if connection.sock is not None:
                    connection.sock.settimeout(None)
                connection.request("POST", "/statements", body, headers)
                response = connection.getresponse()
                if response.status != http.client.OK:
                    raise _refusal(response)
                for line in response:
                    answer = json.loads(line)
                    if "error" in answer:
                        raise ServerRefusedError(answer["error"])
                    yield answer
            except (OSError, http.client.HTTPException) as error:
                raise ServerUnreachableError(
                    f"the server at {self.address} went away: {_text(error)}"
                ) from error

    def _get(self, path: str, seconds_max: float | None) -> Mapping[str, Any]:
        with closing(self._connect(seconds_max or CONNECT_SECONDS_MAX)) as connection:
            try:
                if seconds_max is None and connection.sock is not None:
                    connection.sock.settimeout(None)
                connection.request("GET", path)
                response = connection.getresponse()
                if response.status != http.client.OK:
                    raise _refusal(response)
                found = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise ServerUnreachableError(
                    f"what is at {self.address} does not answer as a server: {_text(error)}"
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
                f"no server answers at {self.address}: {_text(error)}"
            ) from error
        return connection


def _refusal(response: http.client.HTTPResponse) -> ServerRefusedError:
    body = response.read()
    try:
        return ServerRefusedError(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return ServerRefusedError({"message": f"HTTP {response.status} {response.reason}"})


def _text(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
