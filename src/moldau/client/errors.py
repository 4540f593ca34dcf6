"""What can go wrong for a client, each with the thing that failed and the way out."""

from collections.abc import Mapping
from typing import Final

from moldau.protocol.errors import ErrorCode

HINTS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create it, or check its name and partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "it was deleted, and perhaps created anew: ask for metadata again",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "letters, digits, '.', '_' and '-' make a name, 249 at most",
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or use the topic that is there",
    ErrorCode.MESSAGE_TOO_LARGE: "raise the topic's max.message.bytes, or send less at once",
    ErrorCode.OFFSET_OUT_OF_RANGE: "seek to an offset that is there, or set auto.offset.reset",
    ErrorCode.NOT_ENOUGH_REPLICAS: "wait for replicas, or lower the topic's min.insync.replicas",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are not as many brokers: ask for fewer replicas",
    ErrorCode.INVALID_PARTITIONS: "a topic has at least one partition, and can only get more",
    ErrorCode.INVALID_CONFIG: "see the message for what is allowed",
    ErrorCode.POLICY_VIOLATION: "the broker's policy refuses it",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer has taken over: stop this one",
    ErrorCode.PRODUCER_FENCED: "another producer has taken over: stop this one",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for it",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for the right to use the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for the right to administer the cluster",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for the right to use the group",
    ErrorCode.GROUP_ID_NOT_FOUND: "check its name: there is no such group",
    ErrorCode.INVALID_GROUP_ID: "set group.id to the name of a group",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "use the protocol and an assignor of the other members",
    ErrorCode.FENCED_INSTANCE_ID: "another member has taken over this group.instance.id",
    ErrorCode.UNRELEASED_INSTANCE_ID: "another member has this group.instance.id: stop it first",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is changing: poll, then try again",
    ErrorCode.UNKNOWN_MEMBER_ID: "it has left the group, or was removed; a group with members"
    " takes offsets only from them",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the members that have subscribed to it first",
    ErrorCode.INVALID_TXN_STATE: "the broker knows of no such transaction: it may have expired",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the transactional id has expired: make a new producer",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "lower transaction.timeout.ms, or raise the broker's "
    "transaction.max.timeout.ms",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the transaction before it is being ended: try again",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for the right to use the id",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "no producer has used it, or it has expired",
    ErrorCode.INVALID_RECORD_STATE: "its acquisition lock has expired: others may have it now",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "wait, or check the broker's log",
}
"""What to do about an error that people meet."""


class ClientError(Exception):
    """A client could not do what it was asked for."""


class KafkaError(ClientError):
    """A broker's answer is an error: `code` is Kafka's."""

    def __init__(self, code: int, what: str = "", message: str | None = None) -> None:
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = ErrorCode.UNKNOWN_SERVER_ERROR
            message = message or f"error {code}, which is unknown here"
        self.what = what
        self.message = message
        parts = [part for part in (what, self.code.name, message) if part]
        hint = HINTS.get(self.code)
        super().__init__(": ".join(parts) + (f" ({hint})" if hint else ""))

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code.retriable


class CommitFailedError(KafkaError):
    """A commit came too late: the group has given the partitions to others.

    Poll more often, have fewer records at once (`max.poll.records`), or raise
    `max.poll.interval.ms`. Who polls joins again.
    """

    def __init__(self, code: int, what: str = "") -> None:
        super().__init__(
            code,
            what,
            "the group has given these partitions to others meanwhile: poll more often, with fewer"
            " records (max.poll.records), or raise max.poll.interval.ms",
        )


class UnreachableError(ClientError):
    """No broker can be reached at an address, or the connection to one was lost."""


class NotKafkaError(ClientError):
    """Something listens at an address, and does not speak Kafka's protocol."""


class RequestTimeoutError(ClientError, TimeoutError):
    """Something was not done in its time."""


class BufferFullError(ClientError):
    """`buffer.memory` is full of records that were not delivered within `max.block.ms`."""


class RecordTooLargeError(ClientError, ValueError):
    """A record does not fit into `max.request.size` or `buffer.memory`."""


class ConfigError(ClientError, ValueError):
    """A setting does not exist, or has a value that is not allowed."""


class NoOffsetError(ClientError):
    """A partition has no position, and `auto.offset.reset` is `none`."""


class ClosedError(ClientError):
    """The client was closed."""


class AcknowledgementError(ClientError):
    """A record of a share group cannot be acknowledged, or was not when it had to be."""


class TransactionError(ClientError):
    """A transaction does not go on."""


class TransactionStateError(TransactionError):
    """Something was called that does not fit, as `send` outside of a transaction."""


class TransactionAbortedError(TransactionError):
    """A record was given up with its transaction."""


class AbortableTransactionError(TransactionError):
    """The transaction has failed: abort it, then begin another. The producer stays usable."""


class FatalTransactionError(TransactionError):
    """The producer cannot go on: close it, and make another."""


class ProducerFencedError(FatalTransactionError):
    """Another producer with the same `transactional.id` has taken over: stop this one."""


class UndeliveredWarning(RuntimeWarning):
    """Records were not delivered, and nobody else would learn of it.

    No `ResourceWarning`: those are not shown unless somebody asks for them.
    """


def check(code: int, what: str = "", message: str | None = None) -> None:
    """Raise `KafkaError` unless the code says that all is well."""
    if code:
        raise KafkaError(code, what, message)
