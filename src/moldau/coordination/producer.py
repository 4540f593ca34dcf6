"""The producer that a transaction belongs to."""

from typing import Final, NamedTuple

from moldau.kernel.ids import ProducerEpoch, ProducerId

NO_PRODUCER: Final = ProducerId(-1)


class ProducerIdentity(NamedTuple):
    """A producer's id, and the epoch that fences its earlier instances."""

    id: ProducerId
    epoch: ProducerEpoch
