"""What the ledger says of a query: whose turn it is, and which batch was decided last.

One record holds all of it, and takes the place of the one before: the topic is compacted.
"""

import json
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

RUNS_KEPT: Final = 64
"""How many runs are remembered as superseded. One that is forgotten and still alive would take the
query over once more: then its successor stops in its place."""
VERSION: Final = 1


class OpenTransaction(NamedTuple):
    """A transaction that a task has written, and whose end is decided elsewhere."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """That a batch is written, and by which transactions: from here on it will be."""

    batch: int
    run: str
    transactions: tuple[OpenTransaction, ...]
    """The oldest first: it is the first to expire."""
    timeout_ms: int | None = None
    """After which the broker aborts them; None: never."""
    is_done: bool = False
    """Whether all of them are committed."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The state of one query's sink."""

    generation: int = 0
    """How often the query was taken over. Transactional ids carry it: those of a run that was
    superseded are nobody else's."""
    runs: tuple[str, ...] = ()
    decision: BatchDecision | None = None

    @property
    def owner(self) -> str | None:
        """The run whose turn it is."""
        return self.runs[-1] if self.runs else None

    def claimed(self, run: str) -> "Ledger":
        """Return what it says when another run has taken over."""
        runs = (*self.runs, run)[-RUNS_KEPT:]
        return replace(self, generation=self.generation + 1, runs=runs)

    def decided(self, decision: BatchDecision | None) -> "Ledger":
        """Return what it says after a decision; None takes the last one back."""
        return replace(self, decision=decision)

    def finished(self) -> "Ledger":
        """Return what it says when the decision is carried out."""
        assert self.decision is not None
        return replace(self, decision=replace(self.decision, is_done=True))


EMPTY: Final = Ledger()


def encode(ledger: Ledger) -> bytes:
    """Write a ledger as JSON, which people can read with any consumer."""
    decision = ledger.decision
    fields: dict[str, object] = {
        "version": VERSION,
        "generation": ledger.generation,
        "runs": ledger.runs,
    }
    if decision is not None:
        fields["decision"] = {
            "batch": decision.batch,
            "run": decision.run,
            "transactions": decision.transactions,
            "timeout_ms": decision.timeout_ms,
            "done": decision.is_done,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(data: bytes) -> Ledger:
    """Read what `encode` has written; `ValueError` if it was something else."""
    fields = json.loads(data)
    if fields["version"] != VERSION:
        raise ValueError(f"version {fields['version']} of the ledger: a newer Moldau has written")
    found = fields.get("decision")
    decision = None
    if found is not None:
        transactions = tuple(OpenTransaction(*each) for each in found["transactions"])
        decision = BatchDecision(
            found["batch"], found["run"], transactions, found["timeout_ms"], found["done"]
        )
    return Ledger(fields["generation"], tuple(fields["runs"]), decision)
