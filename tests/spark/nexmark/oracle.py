"""What each query must find, by plain Python over all events at once."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeAlias, TypeVar

from tests.spark.nexmark.events import Events

Found: TypeAlias = list[dict[str, object]]
Content = TypeVar("Content")
WINDOW_MS = 10_000
SLIDE_MS = 2_000
LAST_AUCTIONS = 10


def q0(events: Events) -> Found:
    return [dict(bid) for bid in events.bids]


def q1(events: Events) -> Found:
    return [
        dict(bid) | {"price": float(int(bid["price"]) * Decimal("0.908"))} for bid in events.bids
    ]


def q2(events: Events) -> Found:
    return [
        {"auction": bid["auction"], "price": bid["price"]}
        for bid in events.bids
        if int(bid["auction"]) % 123 == 0
    ]


def q3(events: Events) -> Found:
    persons = {person["id"]: person for person in events.persons}
    found: Found = []
    for auction in events.auctions:
        person = persons.get(auction["seller"])
        if auction["category"] == 10 and person and person["state"] in ("OR", "ID", "CA"):
            place = {name: person[name] for name in ("name", "city", "state")}
            found.append({**place, "id": auction["id"]})
    return found


def q4(events: Events) -> Found:
    prices = defaultdict(list)
    for auction, price in _final_prices(events).items():
        prices[events.auctions[auction]["category"]].append(price)
    return [{"category": key, "average": _mean(each)} for key, each in prices.items()]


def q5(events: Events) -> Found:
    counts: dict[int, dict[object, int]] = defaultdict(lambda: defaultdict(int))
    for bid in events.bids:
        last = int(bid["at"]) - int(bid["at"]) % SLIDE_MS
        for start in range(last - WINDOW_MS + SLIDE_MS, last + 1, SLIDE_MS):
            counts[start][bid["auction"]] += 1
    return [
        {"start": start, "auction": auction, "bids": bids}
        for start, auctions in _closed(counts, events).items()
        for auction, bids in auctions.items()
        if bids == max(auctions.values())
    ]


def q6(events: Events) -> Found:
    closed = defaultdict(list)
    for auction, price in _final_prices(events).items():
        row = events.auctions[auction]
        closed[row["seller"]].append((row["expires"], row["id"], price))
    found: Found = []
    for seller, auctions in closed.items():
        last = sorted(auctions)[-LAST_AUCTIONS:]
        found.append({"seller": seller, "average": _mean([price for _, _, price in last])})
    return found


def q7(events: Events) -> Found:
    windows = defaultdict(list)
    for bid in events.bids:
        windows[_window(bid)].append(bid)
    return [
        {"start": start, **{name: bid[name] for name in ("auction", "bidder", "price")}}
        for start, bids in _closed(windows, events).items()
        for bid in bids
        if bid["price"] == max(int(each["price"]) for each in bids)
    ]


def q8(events: Events) -> Found:
    sellers = {(auction["seller"], _window(auction)) for auction in events.auctions}
    return [
        {"id": person["id"], "name": person["name"], "start": _window(person)}
        for person in events.persons
        if (person["id"], _window(person)) in sellers
    ]


def _final_prices(events: Events) -> dict[int, int]:
    """Return the highest bid on each auction that came in its time."""
    prices: dict[int, int] = {}
    for bid in events.bids:
        number, price = int(bid["auction"]), int(bid["price"])
        if number < 0:
            continue
        auction = events.auctions[number]
        if int(auction["at"]) <= int(bid["at"]) <= int(auction["expires"]):
            prices[number] = max(price, prices.get(number, 0))
    return prices


def _window(event: Mapping[str, int | str]) -> int:
    return int(event["at"]) - int(event["at"]) % WINDOW_MS


def _closed(windows: Mapping[int, Content], events: Events) -> dict[int, Content]:
    """Return the windows that are over at the end; those of the last event, long after, are not."""
    end = int(events.bids[-2]["at"])
    return {start: each for start, each in windows.items() if start <= end}


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers)


ORACLE: Mapping[str, Callable[[Events], Found]] = {
    query.__name__: query for query in (q0, q1, q2, q3, q4, q5, q6, q7, q8)
}
