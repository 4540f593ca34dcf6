"""What can be wrong with a metadata log or a snapshot."""

from moldau.kernel.errors import ProtocolError


class UnknownRecordError(ProtocolError):
    """A metadata record of a type or version that this release does not know."""


class ReplayError(ProtocolError):
    """A metadata record that does not fit what was replayed before it."""


class UnsupportedLevelError(ReplayError):
    """A feature is at a level that this release does not support; one line for its operator."""
