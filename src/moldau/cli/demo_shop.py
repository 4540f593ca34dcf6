"""What happens in the demo's shop: people who move, buy and look around, all of it invented."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

USERS: Final = ("ann", "bob", "eva", "jan", "ota", "zoe")
CITIES: Final = ("Praha", "Brno", "Plzen", "Olomouc", "Písek", "Mělník")
PAGES: Final = ("/", "/rivers", "/bridges", "/cart")


@dataclass(frozen=True, slots=True)
class ShopEvent:
    """Something that goes to a topic."""

    topic: str
    key: str | None
    value: dict[str, Any]


class Shop:
    """Says what happens from moment to moment."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._orders = 0

    def open(self) -> Iterator[ShopEvent]:
        """Yield all users."""
        for user in USERS:
            yield self._move(user)

    def happen(self, time: datetime) -> Iterator[ShopEvent]:
        """Yield what happens at a moment: an order, a few clicks, and seldom somebody moves."""
        self._orders += 1
        at = time.isoformat()
        order = f"o{self._orders}"
        amount = round(self._chance.uniform(1, 100), 2)
        user = self._chance.choice(USERS)
        yield ShopEvent("orders", order, {"id": order, "user": user, "amount": amount, "at": at})
        for _ in range(self._chance.randint(1, 3)):
            page = self._chance.choice(PAGES)
            yield ShopEvent("clicks", None, {"user": user, "page": page, "at": at})
        if self._chance.random() < 0.05:
            yield self._move(user)

    def _move(self, user: str) -> ShopEvent:
        city = self._chance.choice(CITIES)
        return ShopEvent("users", user, {"name": user.capitalize(), "city": city})
