"""A principal inside an Envelope."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, boolean, field, string


class DefaultPrincipalData(Message, versions=(0, 0), flexible=0):
    type: str = field(string)
    name: str = field(string)
    token_authenticated: bool = field(boolean)
