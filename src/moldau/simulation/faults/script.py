"""Scripts: faults tied to events of a run, as text that can be written, cut and replayed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

COUNTERS: Final[Mapping[str, float]] = {
    "operation": 60.0,
    "step": 190.0,
    "disk": 230.0,
    "append": 50.0,
    "sync": 50.0,
    "end": 0.0,
}
"""Events that are counted, each with how many a second has as a rule.

An `operation` is one that a client has completed, a `step` a turn of the node's event loop, `disk`
any operation on a disk of the node, `append` and `sync` those of that name. All count on when the
node starts again. There is one `end`, when all that must heal is healed.
"""
HEADERS: Final = ("seed", "seconds", "clients")


class ScriptError(ValueError):
    """A text is no script; says which line, and why."""


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """One fault and the event that it hits.

        cut client-1 at operation 77 seconds=2.5 way=there

    happens when the 77th operation of all clients is completed.
    """

    kind: str
    target: str
    """The machine or client that it hits."""
    counter: str
    number: int
    details: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = [self.kind, self.target, "at", self.counter, str(self.number)]
        return " ".join([*words, *(f"{name}={value}" for name, value in self.details)])

    def text(self, name: str) -> str:
        """Return a detail; `ScriptError` if it is not given."""
        for known, value in self.details:
            if known == name:
                return value
        raise ScriptError(f"`{self}` does not say {name}=")

    def amount(self, name: str) -> float:
        """Return a detail that is a number."""
        text = self.text(name)
        try:
            return float(text)
        except ValueError:
            raise ScriptError(f"`{self}`: {name} is not a number") from None

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line; `ScriptError`."""
        match line.split():
            case [kind, target, "at", counter, number, *details] if number.isdigit():
                if counter not in COUNTERS:
                    known = ", ".join(COUNTERS)
                    raise ScriptError(f"`{line}`: no event {counter}; there are {known}")
                pairs = tuple(_pair(line, each) for each in details)
                return cls(kind, target, counter, int(number), pairs)
            case _:
                raise ScriptError(f"`{line}` is not KIND TARGET at EVENT NUMBER [NAME=VALUE]...")


@dataclass(frozen=True, slots=True)
class FaultScript:
    """All faults of a run, with what else the run needs to be the same."""

    seed: int
    seconds: float
    faults: tuple[ScriptedFault, ...] = ()
    clients: tuple[str, ...] = field(default=())
    """The clients that take part; empty: all of them."""

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", f"seconds {self.seconds:g}"]
        if self.clients:
            lines.append(f"clients {' '.join(self.clients)}")
        return "\n".join([*lines, *map(str, self.faults), ""])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a script; empty lines and those that begin with # say nothing; `ScriptError`."""
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        headers = {
            name: rest.split()
            for name, _, rest in (line.partition(" ") for line in lines)
            if name in HEADERS
        }
        try:
            (seed,), (seconds,) = headers["seed"], headers["seconds"]
            numbers = int(seed), float(seconds)
        except (KeyError, ValueError):
            raise ScriptError("a script begins with `seed NUMBER` and `seconds NUMBER`") from None
        faults = _faults(line for line in lines if line.partition(" ")[0] not in HEADERS)
        return cls(*numbers, faults, tuple(headers.get("clients", ())))


def _faults(lines: Iterable[str]) -> tuple[ScriptedFault, ...]:
    return tuple(map(ScriptedFault.parse, lines))


def _pair(line: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise ScriptError(f"`{line}`: {text} is not NAME=VALUE")
    return name, value
