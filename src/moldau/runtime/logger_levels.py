"""The levels of Python's loggers, in Kafka's words."""

import logging
from collections.abc import Mapping
from typing import Final

ROOT: Final = "root"

# Kafka's levels; TRACE has no name in Python, and is below DEBUG.
_LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}


class LoggerLevels:
    """Fills the broker's port to loggers (`broker.ports.LoggersPort`)."""

    def levels(self) -> Mapping[str, str]:
        """Return the level that counts for each logger of ours, and that of the root."""
        names = [name for name in logging.root.manager.loggerDict if name.startswith("moldau")]
        levels = {ROOT: _name_of(logging.root.level)}
        for name in sorted(names):
            levels[name] = _name_of(logging.getLogger(name).getEffectiveLevel())
        return levels

    def set_level(self, name: str, level: str | None) -> None:
        """Set a logger's own level, or leave it to those above it."""
        logger = logging.root if name == ROOT else logging.getLogger(name)
        logger.setLevel(logging.NOTSET if level is None else _LEVELS[level])


def _name_of(level: int) -> str:
    """Return Kafka's name for a level, or for the next more talkative one."""
    return next(name for name, number in _LEVELS.items() if number <= max(level, 5))
