"""Offsets of partitions, and their JSON: `{"clicks": {"0": 5, "1": 7}}`."""

import json
from collections.abc import Mapping
from typing import Final

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.errors import OptionError

LATEST: Final = -1
EARLIEST: Final = -2

Offsets = dict[TopicPartition, int]
"""The offset of the next record of each partition."""

OffsetsByTopic = dict[str, dict[str, int]]
"""The same as JSON has it, which is how Spark keeps them in a checkpoint."""


def from_json(nested: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return offsets as they were written by `to_json`, or by Spark's Kafka connector."""
    return {
        TopicPartition(topic, int(index)): offset
        for topic, partitions in nested.items()
        for index, offset in partitions.items()
    }


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsByTopic:
    """Return offsets by topic and partition, in their order: equal offsets are equal texts."""
    nested: OffsetsByTopic = {}
    for key in sorted(offsets):
        nested.setdefault(key.topic, {})[str(key.partition)] = offsets[key]
    return nested


def parse_numbers(name: str, text: str, *, least: int) -> Offsets:
    """Read an option's JSON with a number, at least `least`, for each partition."""
    example = '{"topic":{"0":23,"1":-2}}' if least < 0 else '{"topic":{"0":1700000000000}}'
    try:
        nested = json.loads(text)
        found = {
            TopicPartition(topic, _index(index)): number
            for topic, partitions in nested.items()
            for index, number in partitions.items()
        }
    except (ValueError, AttributeError):
        found = {}
    if not found or not all(type(number) is int and number >= least for number in found.values()):
        raise OptionError(f"option {name}={text}: JSON such as {example} is wanted")
    return found


def parse_partitions(name: str, text: str) -> list[TopicPartition]:
    """Read an option's JSON that names partitions: `{"clicks": [0, 1]}`."""
    try:
        found = sorted(
            {
                TopicPartition(topic, _index(index))
                for topic, indexes in json.loads(text).items()
                for index in indexes
            }
        )
    except (ValueError, TypeError, AttributeError):
        found = []
    if not found:
        raise OptionError(f'option {name}={text}: JSON such as {{"topic":[0,1]}} is wanted')
    return found


def _index(value: object) -> int:
    index = int(str(value))
    if index < 0:
        raise ValueError(value)
    return index
