"""Resources that have configs, as far as a broker has to do with them before the controller has."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import decide
from moldau.broker.error_texts import text_of
from moldau.controller.alter_configs import ConfigOperation
from moldau.coordination.command import Command
from moldau.coordination.refusal import Refusal
from moldau.metadata.configs import ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_configs import AlterConfigsResponse
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    IncrementalAlterConfigsResponse,
)

BROKER_LOGGER: Final = 8
"""A broker's own loggers: a type of resource that is not in the cluster's metadata."""

ROOT_LOGGER: Final = "root"
LEVELS: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")


class NamedResource(Protocol):
    """A resource in a request or in an answer."""

    resource_type: int
    resource_name: str


AnyNamed = TypeVar("AnyNamed", bound=NamedResource)
Response = TypeVar("Response", AlterConfigsResponse, IncrementalAlterConfigsResponse)


class ConfigOutcome(NamedTuple):
    """What came of changing a resource's configs."""

    code: int
    message: str | None


def alter(
    broker: Broker,
    call: Call,
    resources: Sequence[AnyNamed],
    do: Callable[[AnyNamed], bool],
    command_of: Callable[[Sequence[AnyNamed]], Command[Response]],
    response_of: Callable[[Iterable[tuple[AnyNamed, ConfigOutcome]]], Response],
) -> Response | None:
    """Have the controller change the configs of those resources that `do` leaves to it.

    `do` looks at each resource: it refuses it, or says whether nothing is left to be done.
    """
    times = Counter((each.resource_type, each.resource_name) for each in resources)

    def settle(resource: AnyNamed) -> ConfigOutcome | None:
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource may be named only once.")
            return ConfigOutcome(ErrorCode.NONE, None) if do(resource) else None
        except Refusal as refusal:
            return ConfigOutcome(refusal.code, refusal.message)

    settled = [settle(resource) for resource in resources]
    left = [each for each, outcome in zip(resources, settled, strict=True) if outcome is None]

    def respond(decided: Iterable[ConfigOutcome]) -> Response:
        others = iter(decided)
        outcomes = [next(others) if outcome is None else outcome for outcome in settled]
        return response_of(zip(resources, outcomes, strict=True))

    def answer(outcome: Response | ErrorCode) -> None:
        if isinstance(outcome, ErrorCode):
            rows = [ConfigOutcome(outcome, text_of(outcome))] * len(left)
        else:
            rows = [
                ConfigOutcome(each.error_code, each.error_message) for each in outcome.responses
            ]
        call.answer(respond(rows))

    if not left:
        return respond(())
    decide(broker, call, command_of(left), answer)
    return None


def check_broker_name(broker: Broker, resource_type: int, name: str) -> None:
    """Refuse what another broker has to answer; an empty name stands for all brokers."""
    if resource_type == ResourceType.BROKER and not name:
        return
    if not name.isascii() or not name.isdigit():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"A broker is named by its number, not {name!r}.")
    if int(name) != broker.node_id:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Broker {broker.node_id} answers for itself; ask broker {name}.",
        )


def alter_loggers(
    broker: Broker, changes: Sequence[AlterableConfig], *, validate_only: bool
) -> None:
    """Change the levels of loggers, or refuse all changes."""
    if len({change.name for change in changes}) != len(changes):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Each logger may be named only once.")
    known = broker.loggers.levels()
    for change in changes:
        if change.name not in known:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"There is no logger {change.name!r}.")
        match change.config_operation:
            case ConfigOperation.SET:
                if change.value not in LEVELS:
                    raise Refusal(
                        ErrorCode.INVALID_CONFIG,
                        f"{change.value!r} is not a level; there are {', '.join(LEVELS)}.",
                    )
            case ConfigOperation.DELETE:
                if change.name == ROOT_LOGGER:
                    raise Refusal(ErrorCode.INVALID_REQUEST, "The root logger always has a level.")
            case operation:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"A logger's level can be set and deleted; operation {operation} does neither.",
                )
    if not validate_only:
        for change in changes:
            is_set = change.config_operation == ConfigOperation.SET
            broker.loggers.set_level(change.name, change.value if is_set else None)
