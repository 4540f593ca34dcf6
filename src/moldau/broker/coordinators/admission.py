"""Whether a transaction's coordinator has to be asked before something is written."""

from moldau.coordination.producer import ProducerIdentity
from moldau.replication.replica import Replica


def is_admitted(replica: Replica, producer: ProducerIdentity) -> bool:
    """Whether the partition has the transaction, or refuses it anyway: nothing need be asked."""
    state = None if replica.log is None else replica.log.producers.states.get(producer.id)
    if state is None:
        return False
    if producer.epoch == state.producer_epoch:
        return state.transaction_first_offset >= 0
    return producer.epoch < state.producer_epoch
