import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.bench_broker import SETTINGS, plan_seconds
from bench.broker_load import Side
from bench.chart import chart, kind_of, read_lines
from bench.comparison import Metric, Race, chosen, row_of
from bench.load import Load, repeat
from bench.row import Row
from bench.schedule import Schedule

FASTER = Metric("rate", "1/s", 1.5, lambda load: load.per_second, more_is_better=True)
SHORTER = Metric("p50", "us", 1.5, lambda load: load.p50_us)
RESULTS = Path(__file__).parents[3] / "bench/results"


def rates(*pairs: tuple[float, float]) -> list[tuple[Load, Load]]:
    return [(Load(mine, seconds=1), Load(peer, seconds=1)) for mine, peer in pairs]


def row(*, ratio: float = 2.0, goal: float = 1.5, spread: float = 0.0) -> Row:
    return Row("what", "against", 2.0, 1.0, "1/s", ratio, goal, warm=True, spread=spread)


def test_a_row_has_the_median_of_its_rounds_and_how_they_differ() -> None:
    found = row_of("race", FASTER, rates((20, 10), (30, 10), (22, 10), (21, 10), (1, 10)))
    assert (found.ours, found.theirs, found.ratio) == (21, 10, pytest.approx(2.1))
    assert found.spread == pytest.approx((3.0 - 0.1) / 2.1)
    assert found.warm
    assert found.what == "race: rate"


def test_where_less_is_better_the_ratio_grows_when_ours_falls() -> None:
    rounds = [(Load(p50_us=50), Load(p50_us=100)), (Load(p50_us=25), Load(p50_us=100))]
    assert row_of("race", SHORTER, rounds).ratio == pytest.approx(3.0)


def test_rounds_that_move_together_are_steady() -> None:
    assert row_of("race", FASTER, rates((20, 10), (40, 20), (10, 5))).spread == 0


def test_a_round_too_short_for_the_clock_of_the_process_divides_by_nothing() -> None:
    assert row_of("race", SHORTER, [(Load(), Load())]).ratio == 0


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (row(), "passed"),
        (row(ratio=1.4), "MISSED"),
        (row(spread=0.31), "unsteady"),
        (row(spread=0.3), "passed"),
        (row(ratio=1.4, spread=0.31), "unsteady"),
        (row(goal=0, spread=0.31), "stated"),
    ],
)
def test_a_goal_is_passed_only_by_a_steady_row(found: Row, verdict: str) -> None:
    assert found.verdict == verdict


def test_a_load_is_repeated_until_its_time_is_over() -> None:
    asked: list[float] = []

    def step(seconds: float) -> Load:
        asked.append(seconds)
        return Load(10, 1e6, 2.0, 0.5, 0.25, p50_us=len(asked), p99_us=9)

    total = repeat(step, 5.0)
    assert asked == [5.0, 3.0, 1.0]
    assert total == Load(30, 3e6, 6.0, 1.5, 0.75, p50_us=3, p99_us=9)
    assert total.per_second == 5.0
    assert total.cpu_seconds_per_gb == pytest.approx(500)
    assert total.cpu_us_per_count == pytest.approx(50_000)


def test_races_are_chosen_by_name_and_by_its_beginning() -> None:
    races = [Race(name, name, Side.java_transactions, ()) for name in ("fetch-1m", "fetch-4k")]
    assert chosen(races, "fetch") == chosen(races, "") == races
    assert chosen(races, "fetch-4k") == races[1:]
    assert chosen(races, "fetch-4") == []


def test_the_broker_races_fit_into_an_hour() -> None:
    names = [race.name for _, races in SETTINGS for race in races]
    assert len(set(names)) == len(names)
    assert plan_seconds("", Schedule()) < 3600
    assert plan_seconds("fetch-4k", Schedule()) == Schedule().race_seconds


def test_a_stored_row_is_cold_unless_it_says_otherwise() -> None:
    assert kind_of({}) == "cold"
    assert kind_of({"warm": False, "spread": 0.1}) == "cold"
    assert kind_of({"warm": True, "spread": 0.3}) == "warm"
    assert kind_of({"warm": True, "spread": 0.31}) == "unsteady"


def test_the_chart_draws_cold_and_warm_rows_apart(tmp_path: Path) -> None:
    stored = [
        {"commit": "old", "rows": [{"what": "a < b", "ratio": 2.5, "goal": 2.0}]},
        {
            "commit": "new",
            "rows": [{"what": "a < b", "ratio": 0.5, "goal": 2.0, "warm": True, "spread": 0.1}],
        },
    ]
    (tmp_path / "broker.jsonl").write_text("".join(json.dumps(run) + "\n" for run in stored))
    assert [dot.kind for dot in read_lines(tmp_path)["a < b"]] == ["cold", "warm"]
    page = ET.fromstring(chart(tmp_path))
    dots = list(page.iter("{http://www.w3.org/2000/svg}circle"))
    assert [dot.get("class") for dot in dots] == ["cold", "warm"]
    assert float(dots[0].get("cy", 0)) < float(dots[1].get("cy", 0))  # the better one is higher
    [path] = page.iter("{http://www.w3.org/2000/svg}polyline")
    assert len(path.get("points", "").split()) == 1


def test_all_stored_results_can_be_drawn() -> None:
    ET.fromstring(chart(RESULTS))
