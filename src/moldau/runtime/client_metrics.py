"""What clients have pushed (KIP-714), in Prometheus' format."""

from collections.abc import Callable, Iterator

from moldau.broker.client_telemetry import ClientTelemetry, Sample
from moldau.kernel.clock import Instant
from moldau.runtime.metrics import Metrics, render_labels


def measure_clients(
    metrics: Metrics, telemetry: ClientTelemetry, clock: Callable[[], Instant]
) -> None:
    """Add what is known of clients to a node's own metrics."""
    metrics.also(lambda: _lines(telemetry, clock().monotonic))


def _lines(telemetry: ClientTelemetry, now: float) -> Iterator[str]:
    families: dict[str, dict[str, Sample]] = {}
    for sample in telemetry.samples(now):
        # Names that are the same to Prometheus would make it drop all we tell; the first stays.
        family = families.setdefault(sample.name, {})
        family.setdefault(render_labels(dict(sample.labels)), sample)
    for name, samples in sorted(families.items()):
        kinds = {"counter" if sample.is_counter else "gauge" for sample in samples.values()}
        yield f"# HELP {name} Pushed by clients.\n"
        yield f"# TYPE {name} {kinds.pop() if len(kinds) == 1 else 'untyped'}\n"
        for labels, sample in samples.items():
            yield f"{name}{{{labels}}} {sample.value}\n"
