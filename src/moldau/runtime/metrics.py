"""What a node counts and measures, and its text in Prometheus' format."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from moldau._native.meters import Buckets, Tally

SECONDS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0,
)  # fmt: skip
"""The buckets of times: from a request in memory to a long poll."""


MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]


class Metric(Protocol):
    """Something with one or more values."""

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Return what follows the name, further labels, and the value, for each value."""


class Counter(Tally):
    """A number that only grows; Prometheus computes rates from it."""

    __slots__ = ()

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Return the value."""
        yield "", "", self.value


class Gauge:
    """A number that is read when somebody looks."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Return the value."""
        yield "", "", self._read()


class MetricTable:
    """Values by their labels, all read when somebody looks: what comes and goes needs no care."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Iterable[tuple[str, float]]]) -> None:
        self._read = read

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Return each value with its labels."""
        for labels, value in self._read():
            yield "", labels, value


class Histogram(Buckets):
    """How often values fell below each bound."""

    __slots__ = ()

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        super().__init__(bounds)

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Return the buckets, each with those below it, the sum and the count."""
        total = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            total += count
            yield "_bucket", f'le="{bound}"', total
        yield "_sum", "", self.sum
        yield "_count", "", total


class Metrics:
    """All metrics of a node, by name and labels."""

    def __init__(self) -> None:
        # For each name its kind, its help, and its metrics by their labels.
        self._families: dict[str, tuple[MetricKind, str, dict[str, Metric]]] = {}
        self._others: list[Callable[[], Iterator[str]]] = []

    def counter(self, name: str, about: str, **labels: str) -> Counter:
        """Add a counter."""
        counter = Counter()
        self._add(name, "counter", about, labels, counter)
        return counter

    def gauge(self, name: str, about: str, read: Callable[[], float], **labels: str) -> None:
        """Add a gauge."""
        self._add(name, "gauge", about, labels, Gauge(read))

    def table(
        self,
        name: str,
        kind: MetricKind,
        about: str,
        read: Callable[[], Iterable[tuple[str, float]]],
    ) -> None:
        """Add what has values for many things; `read` returns labels, as rendered, and values.

        It is walked over several turns of the loop, so it must not walk what may change meanwhile.
        """
        self._add(name, kind, about, {}, MetricTable(read))

    def histogram(self, name: str, about: str, **labels: str) -> Histogram:
        """Add a histogram of seconds."""
        histogram = Histogram()
        self._add(name, "histogram", about, labels, histogram)
        return histogram

    def also(self, lines: Callable[[], Iterator[str]]) -> None:
        """Add the lines of metrics that others keep."""
        self._others.append(lines)

    def render(self) -> str:
        """Return the values of now, as text."""
        return "".join(self.lines())

    def _add(
        self, name: str, kind: MetricKind, about: str, labels: dict[str, str], metric: Metric
    ) -> None:
        family = self._families.setdefault(name, (kind, about, {}))
        assert family[:2] == (kind, about), f"{name} is two different things"
        family[2][render_labels(labels)] = metric

    def lines(self) -> Iterator[str]:
        """Return the text piece by piece, each with the values of its moment."""
        for name, (kind, about, metrics) in sorted(self._families.items()):
            yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
            for labels, metric in metrics.items():
                for suffix, further, value in metric.samples():
                    shown = ",".join(filter(None, (labels, further)))
                    braces = f"{{{shown}}}" if shown else ""
                    yield f"{name}{suffix}{braces} {value}\n"
        for lines in self._others:
            yield from lines()


def render_labels(labels: Mapping[str, str]) -> str:
    """Return labels as they stand between braces."""
    return ",".join(f'{key}="{_escape(value)}"' for key, value in sorted(labels.items()))


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
