"""What can be wrong with bytes that came from somewhere else."""


class ProtocolError(ValueError):
    """The bytes, or the values asked to become bytes, break the wire format."""


class CorruptBatchError(ProtocolError):
    """A record batch is damaged: framing, magic, checksum. Kafka's CORRUPT_MESSAGE."""


class InvalidRecordError(ProtocolError):
    """A batch is whole, but its records break the rules. Kafka's INVALID_RECORD."""


class OffsetDeltaError(InvalidRecordError):
    """The records of a produced batch are not numbered 0, 1, 2, ..."""


class CompressionError(ProtocolError):
    """A compressed payload cannot be opened, or is larger than allowed."""
