"""A key's value from the view of another process, if one has it."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.key_bytes import encode_key
from moldau.pipelines.views.client import ViewClient
from moldau.pipelines.views.key_shape import KeyShape

LIST_SECONDS_MAX: Final = 1.0


@dataclass(frozen=True, slots=True)
class ServedView:
    """A view that a server has of a topic."""

    client: ViewClient
    name: str
    """What the server calls the table."""

    def find_value(self, key: str) -> tuple[bytes | None, bool]:
        """Return the value of a key's record, and whether the view has caught up."""
        found = self.client.view(self.name, key, has_values=True)
        values = found["values"]
        return base64.b64decode(values[0]) if values else None, bool(found["caught_up"])


def find_served(addresses: Iterable[str], topic: str, key: Mapping[str, str]) -> ServedView | None:
    """Return the first of these servers' views that is of a topic, by the same key.

    Servers that do not answer are passed by, and so are windowed tables: they are asked for ranges.
    """
    shape = KeyShape(key)
    if shape.is_windowed:
        return None
    for address in addresses:
        client = ViewClient(address)
        try:
            tables = client.views(LIST_SECONDS_MAX)
        except PipelineError:
            continue
        for each in tables:
            if each["topic"] == topic and KeyShape(each["key"]).types == shape.types:
                return ServedView(client, str(each["name"]))
    return None


def key_text(types: Mapping[str, str], key: object) -> str | None:
    """Return a key as a server takes it, a text or JSON; None for bytes, which are neither."""
    written = encode_key(types, key)
    if len(types) > 1:
        return written.decode()
    ((name, kind),) = types.items()
    match kind:
        case "string":
            return written.decode()
        case "binary":
            return None
        case "int" | "bigint":
            return str(key)
        case _:
            return json.dumps({name: json.loads(written)})
