"""Questions about several names, which different brokers may answer: a result or an error each."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from moldau.client.errors import ClientError

Result = TypeVar("Result")


async def ask_each(
    names: Iterable[str], ask: Callable[[str], Awaitable[Result]]
) -> dict[str, Result | ClientError]:
    """Ask about all names at once; return what is known of each, in their order."""

    async def attempt(name: str) -> Result | ClientError:
        try:
            return await ask(name)
        except ClientError as error:
            return error

    wanted = list(dict.fromkeys(names))
    return dict(zip(wanted, await asyncio.gather(*map(attempt, wanted)), strict=True))
