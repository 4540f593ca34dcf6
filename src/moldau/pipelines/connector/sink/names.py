"""The names of a sink's transactional ids: a bounded set for each run, which all batches reuse."""

from typing import Final

PREFIX: Final = "moldau"
JOB_PREFIX: Final = "job-"
"""Keys of batch writes, which nobody starts again; the others are queries."""


def transactional_id(key: str, generation: int, partition: int, attempt: int) -> str:
    """Return the id of one attempt at one task of any batch."""
    return f"{PREFIX}-{key}-{generation}-{partition}-{attempt}"


def ledger_id(key: str) -> str:
    """Return the id of whoever writes the ledger."""
    return f"{PREFIX}-{key}-ledger"


def find_generation(key: str, transactional_id: str) -> int | None:
    """Return the generation of a task's id, None if it is not one of the key's."""
    head, *numbers = transactional_id.rsplit("-", 3)
    if head != f"{PREFIX}-{key}" or not all(map(str.isdecimal, numbers)):
        return None
    return int(numbers[0])
