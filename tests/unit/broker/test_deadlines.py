from moldau.broker.deadlines import CROWD_MIN, ExpiryQueue
from tests.unit.broker.world import Environment


class Waiting:
    def __init__(self, environment: Environment, deadline: float = 3.0) -> None:
        self.environment = environment
        self.deadline = deadline
        self.is_done = False
        self.expired_at: float | None = None

    def expire(self) -> None:
        self.is_done = True
        self.expired_at = self.environment.monotonic


def test_each_expires_at_its_time():
    environment = Environment()
    deadlines = ExpiryQueue(environment)
    waiting = [Waiting(environment) for _ in range(3)]
    for at, each in zip((3.0, 1.0, 2.0), waiting, strict=True):
        deadlines.add(at, each)
    environment.run(10.0)
    assert [each.expired_at for each in waiting] == [3.0, 1.0, 2.0]
    assert len(deadlines) == 0


def test_what_is_done_does_not_expire_and_does_not_stay():
    environment = Environment()
    deadlines = ExpiryQueue(environment)
    for _ in range(100 * CROWD_MIN):
        each = Waiting(environment)
        deadlines.add(100.0, each)
        assert len(deadlines) == 1
        each.is_done = True
        assert len(deadlines) == 0
    assert len(deadlines._heap) <= CROWD_MIN + 1
    assert len([timer for _, _, timer in environment.timers if timer.do]) == 1, "one timer for all"
    environment.run(200.0)
    assert each.expired_at is None
    assert len(deadlines._heap) == 0


def test_a_wrong_time_for_one_moves_no_other():
    environment = Environment()
    deadlines = ExpiryQueue(environment)
    late, early = Waiting(environment), Waiting(environment)
    deadlines.add(5.0, late)
    deadlines.add(-1.0, early)
    environment.run()
    assert (early.is_done, late.is_done) == (True, False)
    environment.run(5.0)
    assert late.expired_at == 5.0


def test_what_is_done_when_the_turn_ends_is_never_added():
    environment = Environment()
    deadlines = ExpiryQueue(environment)
    done, left = Waiting(environment), Waiting(environment)
    deadlines.fresh += [done, left]
    assert len(deadlines) == 2
    done.is_done = True
    deadlines.settle()
    assert (len(deadlines), len(deadlines._heap)) == (1, 1)
    environment.run(3.0)
    assert (done.expired_at, left.expired_at) == (None, 3.0)


def test_all_expire_at_once_those_of_this_turn_too():
    environment = Environment()
    deadlines = ExpiryQueue(environment)
    early, fresh = Waiting(environment), Waiting(environment)
    deadlines.add(3.0, early)
    deadlines.fresh.append(fresh)
    deadlines.expire_all()
    assert (early.expired_at, fresh.expired_at) == (0.0, 0.0)
    assert len(deadlines) == 0
