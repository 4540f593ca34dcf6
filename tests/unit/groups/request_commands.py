"""The command that a request becomes, by the request's type."""

from typing import Any, get_args

from moldau.coordination.command import RequestCommand
from moldau.groups import commands
from moldau.protocol.schema import Message

_KINDS: dict[type[Message], type[RequestCommand[Any, Any]]] = {
    get_args(kind.__orig_bases__[0])[0]: kind
    for kind in vars(commands).values()
    if isinstance(kind, type) and issubclass(kind, RequestCommand) and kind is not RequestCommand
}


def command_of(
    request: Message, version: int, client_id: str = "", client_host: str = ""
) -> RequestCommand[Any, Any]:
    """Return a request as the broker gives it to the coordinator of groups."""
    return _KINDS[type(request)](request, version, client_id, client_host)
