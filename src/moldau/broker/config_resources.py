"""Resources that have configs, as far as a broker has to do with them before the controller has."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from moldau.broker.broker import Broker
from moldau.controller.alter_configs import Operation
from moldau.controller.refusal import Refusal
from moldau.metadata.configs import ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.incremental_alter_configs import AlterableConfig

BROKER_LOGGER: Final = 8
"""A broker's own loggers: a type of resource that is not in the cluster's metadata."""

ROOT_LOGGER: Final = "root"
LEVELS: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")


class Named(Protocol):
    """A resource in a request or in an answer."""

    resource_type: int
    resource_name: str


AnyNamed = TypeVar("AnyNamed", bound=Named)


class Outcome(NamedTuple):
    """What came of changing a resource's configs."""

    code: int
    message: str | None


class Settled:
    """The resources of a request, of which some are answered before the controller is asked."""

    def __init__(self, resources: Sequence[AnyNamed], do: Callable[[AnyNamed], bool]) -> None:
        """Have `do` look at each resource: it refuses it, or says whether nothing is left to do."""
        self._outcomes: list[Outcome | None] = []
        times = Counter((each.resource_type, each.resource_name) for each in resources)
        for resource in resources:
            outcome = None
            try:
                if times[resource.resource_type, resource.resource_name] > 1:
                    raise Refusal(
                        ErrorCode.INVALID_REQUEST, "Each resource may be named only once."
                    )
                if do(resource):
                    outcome = Outcome(ErrorCode.NONE, None)
            except Refusal as refusal:
                outcome = Outcome(refusal.code, refusal.message)
            self._outcomes.append(outcome)

    def left(self, resources: Iterable[AnyNamed]) -> list[AnyNamed]:
        """Return the resources that the controller decides about."""
        pairs = zip(resources, self._outcomes, strict=True)
        return [resource for resource, outcome in pairs if outcome is None]

    def outcomes(self, decided: Iterable[Outcome]) -> Iterator[Outcome]:
        """Return all outcomes in their order; `decided` are those of the controller."""
        others = iter(decided)
        for outcome in self._outcomes:
            yield next(others) if outcome is None else outcome


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
            case Operation.SET:
                if change.value not in LEVELS:
                    raise Refusal(
                        ErrorCode.INVALID_CONFIG,
                        f"{change.value!r} is not a level; there are {', '.join(LEVELS)}.",
                    )
            case Operation.DELETE:
                if change.name == ROOT_LOGGER:
                    raise Refusal(ErrorCode.INVALID_REQUEST, "The root logger always has a level.")
            case operation:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"A logger's level can be set and deleted; operation {operation} does neither.",
                )
    if not validate_only:
        for change in changes:
            is_set = change.config_operation == Operation.SET
            broker.loggers.set_level(change.name, change.value if is_set else None)
