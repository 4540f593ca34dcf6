"""What a client may do, as answers show it: everything, until there is security."""

from typing import Final

NOT_ASKED: Final = -(1 << 31)
"""The value of the field when the client has not asked for it."""

# Bits by Kafka's numbers of operations.
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = (1 << number for number in range(3, 9))
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (
    1 << number for number in range(9, 13)
)

TOPIC: Final = (
    _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
)
CLUSTER: Final = (
    _CREATE
    | _ALTER
    | _DESCRIBE
    | _CLUSTER_ACTION
    | _DESCRIBE_CONFIGS
    | _ALTER_CONFIGS
    | _IDEMPOTENT_WRITE
)
GROUP: Final = _READ | _DELETE | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
