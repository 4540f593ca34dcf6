"""What the metrics tell of coordinators, and that a look at them changes nothing."""

from moldau.runtime.coordinator_metrics import measure_coordinators
from moldau.runtime.metrics import Metrics
from tests.unit.broker.world import World


def test_who_looks_has_no_coordinator_made() -> None:
    world, metrics = World(), Metrics()
    measure_coordinators(metrics, world.broker)
    assert "moldau_group_offsets 0" in metrics.render()
    assert list(world.broker.coordinators) == []
    world.create("__consumer_offsets", 1, topic_id=b"offsets".ljust(16, b"."), leader=1)
    world.environment.run()
    assert '{state="active",topic="__consumer_offsets"} 1' in metrics.render()
