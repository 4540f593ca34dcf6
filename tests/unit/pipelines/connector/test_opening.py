import pytest

from moldau.client.errors import UnreachableError
from moldau.pipelines.connector import opening
from moldau.pipelines.connector.opening import open_client


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    moved = Time()
    monkeypatch.setattr(opening, "time", moved)
    return moved


def test_a_broker_that_restarts_is_waited_for(time: Time) -> None:
    def client(*, name: str) -> str:
        if time.now < opening.WAIT_SECONDS / 2:
            raise UnreachableError("connection refused")
        return name

    assert open_client(client, name="admin") == "admin"


def test_a_broker_that_does_not_come_back_is_told(time: Time) -> None:
    def client() -> str:
        raise UnreachableError("connection refused")

    with pytest.raises(UnreachableError, match="refused"):
        open_client(client)
    assert time.now > opening.WAIT_SECONDS


def test_other_errors_are_told_at_once(time: Time) -> None:
    def client() -> str:
        raise ValueError("a wrong setting")

    with pytest.raises(ValueError, match="setting"):
        open_client(client)
    assert time.now == 0
