"""What a coordinator or the controller can be asked; the type of a command says its answer's."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from moldau.protocol.schema import Message

Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105 - a name for readers, in every signature
OwnAnswer = TypeVar("OwnAnswer")
"""An answer that no narrower or wider one can stand for: a ticket's."""
Request = TypeVar("Request", bound=Message, covariant=True)  # noqa: PLC0105


class Command(Generic[Answer]):
    """Asks for a decision, which is answered with an `Answer` or a `Refusal`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RequestCommand(Command[Answer], Generic[Request, Answer]):
    """A client's request, with what its connection tells of the client."""

    request: Request
    version: int
    client_id: str = ""
    client_host: str = ""


class Ticket(int, Generic[OwnAnswer]):
    """The number of a caller that waits for an answer; a later decision may reply to it."""

    __slots__ = ()


class Done(Enum):
    """The answer to a command that asks for nothing but to be carried out."""

    DONE = "done"


DONE: Final = Done.DONE
