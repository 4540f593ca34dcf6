"""Whether a view has caught up: only if that is known."""

from moldau.pipelines.views.ends import SECONDS_MAX, Ends


def test_all_partitions_must_be_at_their_ends() -> None:
    ends = Ends(2, {0: 5, 1: 0}, asked_at=100.0)
    assert not ends.are_reached({0: 4}, 100.0)
    assert ends.are_reached({0: 5}, 100.0)
    assert ends.are_reached({0: 7, 1: 3}, 100.0)


def test_what_is_not_known_is_not_reached() -> None:
    assert not Ends().are_reached({}, 0.0)
    assert not Ends(2, {0: 5}, asked_at=100.0).are_reached({0: 5, 1: 5}, 100.0)
    ends = Ends(1, {0: 5}, asked_at=100.0)
    assert ends.are_reached({0: 5}, 100.0 + SECONDS_MAX)
    assert not ends.are_reached({0: 5}, 100.1 + SECONDS_MAX)


def test_an_end_before_what_was_read_is_another_logs() -> None:
    ends = Ends.of(2, {0: 2, 1: 9}, 100.0, positions={0: 50, 1: 9})
    assert ends.offsets == {1: 9}
    assert not ends.are_reached({0: 50, 1: 9}, 100.0)
