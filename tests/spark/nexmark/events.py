"""The events of an auction site, drawn from a seed: persons, auctions and bids."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

START_MS = 1_700_000_000_000
STEP_MS = 10
"""Time between two events, of whatever kind."""
LATER_MS = 3_600_000
"""When, behind everything else, one event of each kind comes that ends all windows."""
# Of 50 events in a row, as the benchmark has it: a person, three auctions, then bids.
ROUND, PERSONS, AUCTIONS = 50, 1, 3
RECENT_PERSONS, RECENT_AUCTIONS = 30, 60
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Palo Alto", "Boise", "Portland", "Seattle", "Cheyenne")
CATEGORIES = (10, 11, 12, 13, 14)
NOBODY = -1
NOTHING = -2


@dataclass
class Events:
    """What has happened, by kind, each in the order of time; the values are JSON's."""

    persons: list[dict[str, int | str]] = field(default_factory=list)
    auctions: list[dict[str, int | str]] = field(default_factory=list)
    bids: list[dict[str, int | str]] = field(default_factory=list)

    def by_topic(self) -> Iterator[tuple[str, list[dict[str, int | str]]]]:
        yield from (("persons", self.persons), ("auctions", self.auctions), ("bids", self.bids))


def generate(count: int, seed: int) -> Events:
    """Return `count` events, and the three that come last."""
    chance = random.Random(seed)
    events = Events()
    for number in range(count):
        at = START_MS + number * STEP_MS
        place = number % ROUND
        if place < PERSONS:
            _add_person(events, chance, at)
        elif place < PERSONS + AUCTIONS:
            _add_auction(events, chance, at)
        else:
            _add_bid(events, chance, at)
    at = START_MS + count * STEP_MS + LATER_MS
    # They belong to nobody, so that no join finds them.
    events.persons.append({"id": NOBODY, "name": "", "city": "", "state": "", "at": at})
    events.auctions.append(
        {"id": NOBODY, "seller": NOTHING, "category": 0, "at": at, "expires": at}
    )
    events.bids.append({"auction": NOTHING, "bidder": NOBODY, "price": 0, "at": at})
    return events


def _add_person(events: Events, chance: random.Random, at: int) -> None:
    identity = len(events.persons)
    where = chance.randrange(len(STATES))
    name = f"{chance.choice(('Ann', 'Bob', 'Cyd', 'Dan'))} {identity}"
    events.persons.append(
        {"id": identity, "name": name, "city": CITIES[where], "state": STATES[where], "at": at}
    )


def _add_auction(events: Events, chance: random.Random, at: int) -> None:
    events.auctions.append(
        {
            "id": len(events.auctions),
            "seller": _recent(len(events.persons), RECENT_PERSONS, chance),
            "category": chance.choice(CATEGORIES),
            "at": at,
            "expires": at + chance.randrange(1_000, 20_000),
        }
    )


def _add_bid(events: Events, chance: random.Random, at: int) -> None:
    events.bids.append(
        {
            "auction": _recent(len(events.auctions), RECENT_AUCTIONS, chance),
            "bidder": _recent(len(events.persons), RECENT_PERSONS, chance),
            "price": chance.randrange(100, 10_000),
            "at": at,
        }
    )


def _recent(count: int, window: int, chance: random.Random) -> int:
    return chance.randrange(max(0, count - window), count)
