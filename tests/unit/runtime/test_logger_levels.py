"""Levels of loggers, in Kafka's words."""

import logging
from collections.abc import Iterator

import pytest

from moldau.broker.config_resources import LEVELS
from moldau.runtime.logger_levels import LoggerLevels


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("moldau.test_logger_levels")
    before = logging.root.level
    yield logger
    logger.setLevel(logging.NOTSET)
    logging.root.setLevel(before)


def test_levels(logger: logging.Logger) -> None:
    loggers = LoggerLevels()
    for level in LEVELS:
        loggers.set_level(logger.name, level)
        assert loggers.levels()[logger.name] == level
    loggers.set_level("root", "ERROR")
    loggers.set_level(logger.name, None)
    assert loggers.levels()[logger.name] == loggers.levels()["root"] == "ERROR"
    assert logging.root.level == logging.ERROR


def test_levels_without_a_name_of_their_own(logger: logging.Logger) -> None:
    logger.setLevel(25)
    assert LoggerLevels().levels()[logger.name] == "INFO"
    logger.setLevel(1)
    assert LoggerLevels().levels()[logger.name] == "TRACE"
