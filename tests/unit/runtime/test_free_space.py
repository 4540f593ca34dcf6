from moldau.runtime.free_space import FreeSpace, Space, Thresholds

LIMITS = Thresholds(low_bytes=1000, reserve_bytes=100, slack_bytes=50)


def test_warns_before_it_refuses_and_resumes_by_itself():
    watch = FreeSpace(LIMITS, free_bytes=5000)
    assert watch.space is Space.AMPLE
    assert watch.observe(1000) is None
    assert watch.observe(999) is Space.LOW
    assert watch.observe(1020) is None
    assert watch.observe(1050) is Space.AMPLE
    assert watch.observe(99) is Space.RESERVED
    assert not watch.admits(1)
    assert watch.observe(120) is None
    assert watch.observe(150) is Space.LOW
    assert watch.admits(1)


def test_counts_what_is_written_between_two_looks():
    watch = FreeSpace(LIMITS, free_bytes=500)
    assert watch.space is Space.LOW
    assert watch.admits(300)
    assert not watch.admits(101)
    assert watch.admits(100)
    assert watch.free_bytes == 100
    assert not watch.admits(1)


def test_a_refused_write_counts_more_than_what_is_said_to_be_free():
    watch = FreeSpace(LIMITS, free_bytes=5000)
    assert watch.exhausted() is Space.RESERVED
    assert watch.exhausted() is None
    assert not watch.admits(0)
    assert watch.observe(5000) is Space.AMPLE


def test_thresholds_suit_the_volume():
    for total in (0, 1 << 20, 64 << 20, 1 << 40):
        limits = Thresholds.of_volume(total)
        assert total // 50 >= limits.reserve_bytes <= 1 << 30
        assert limits.low_bytes >= 2 * limits.reserve_bytes
        assert FreeSpace(limits, free_bytes=total).space is Space.AMPLE
