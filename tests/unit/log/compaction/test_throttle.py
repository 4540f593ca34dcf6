from moldau.kernel.clock import Instant
from moldau.log.compaction.throttle import BURST_SECONDS, Throttle


def test_the_rate_holds_over_time() -> None:
    clock = 0.0
    throttle = Throttle(1000, Instant(clock, 0))
    for _ in range(100):
        clock += throttle.spend(500, Instant(clock, 0))
    assert clock == 50 - BURST_SECONDS


def test_a_pause_is_not_made_up_for() -> None:
    throttle = Throttle(1000, Instant(0.0, 0))
    assert throttle.spend(300, Instant(0.0, 0)) == 0
    assert throttle.spend(400, Instant(60.0, 0)) == 0.1


def test_what_is_slow_enough_never_waits() -> None:
    throttle = Throttle(1000, Instant(0.0, 0))
    assert all(throttle.spend(90, Instant(n / 10, 0)) == 0 for n in range(100))
