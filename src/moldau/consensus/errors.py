"""Why a node cannot take part in the quorum."""

from moldau.kernel.errors import ProtocolError


class QuorumStateError(ProtocolError):
    """A quorum-state file that cannot be read."""


class UnsupportedQuorumError(ProtocolError):
    """The log belongs to a quorum that this node cannot lead alone; one line for its operator."""
