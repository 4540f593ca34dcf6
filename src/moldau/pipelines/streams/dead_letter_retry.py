"""Sends dead letters back to the topics that they come from, each once.

How far that has come is kept apart for each of these topics, in a group of its own: whoever sends
back those of one topic can send back the others later. A transaction has letters and offsets, so
that a command that is killed and run again sends nothing twice; its transactional id fences
another command that runs at the same time.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau.client.admin import Admin
from moldau.client.errors import KafkaError
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.client.producer import Producer
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.dead_letter_headers import (
    DEAD_LETTER_HEADERS,
    TOPIC,
    dead_letters_topic,
)
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau._native.fetched import Record

POLL_MS: Final = 500
SILENCE_SECONDS_MAX: Final = 60.0

RecordHeaders = Sequence[tuple[str, bytes | None]]


class RecordOrigin(NamedTuple):
    """Where a record was before it became a dead letter, and the headers that it had."""

    topic: str
    headers: RecordHeaders


def find_origin(headers: RecordHeaders) -> RecordOrigin | None:
    """Read the headers of a dead letter; None if it is another record."""
    had, added = headers[: -len(DEAD_LETTER_HEADERS)], headers[-len(DEAD_LETTER_HEADERS) :]
    if tuple(name for name, _ in added) != DEAD_LETTER_HEADERS:
        return None
    topic = dict(added)[TOPIC]
    return None if not topic else RecordOrigin(topic.decode(errors="replace"), had)


def retry_group(letters_topic: str, topic: str) -> str:
    """Return the group that knows which letters went back to a topic."""
    return f"moldau-{letters_topic}-to-{topic}"


def retry_dead_letters(
    app_name: str,
    servers: str,
    config: Mapping[str, object] | None = None,
    *,
    topic: str | None = None,
) -> Counter[str]:
    """Send back an app's dead letters, or those of one topic; return how many went to each."""
    letters_topic = dead_letters_topic(app_name)
    settings = dict(config or {})
    with (
        Admin(servers, config=settings) as admin,
        Producer(
            servers, config={**settings, "transactional.id": f"moldau-{letters_topic}-retry"}
        ) as producer,
        Consumer(
            servers,
            config={**settings, "isolation.level": "read_committed"},
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        ends = _find_ends(admin, letters_topic, app_name)
        # From here on no other command sends letters back, and what one has begun is over.
        producer.init_transactions()
        retry = _Retry(admin, producer, letters_topic, topic)
        consumer.assign(list(ends))
        consumer.seek_to_beginning()
        heard = time.monotonic()
        while any(consumer.position(key) < end for key, end in ends.items()):
            records = consumer.poll(timeout_ms=POLL_MS)
            if records:
                heard = time.monotonic()
                retry.send_back(
                    [record for record in records if record.offset < ends[_place(record)]]
                )
            elif time.monotonic() > heard + SILENCE_SECONDS_MAX:
                raise PipelineError(
                    f"topic {letters_topic}: nothing came for {SILENCE_SECONDS_MAX:g} s; what was "
                    "sent back is counted: run this again to go on"
                )
        return retry.counts


class _Retry:
    """Sends letters back, and counts them."""

    def __init__(
        self, admin: Admin, producer: Producer, letters_topic: str, topic: str | None
    ) -> None:
        self._admin = admin
        self._producer = producer
        self._letters_topic = letters_topic
        self._topic = topic
        self._done: dict[str, dict[TopicPartition, int]] = {}
        self.counts: Counter[str] = Counter()

    def send_back(self, letters: "Sequence[Record]") -> None:
        """Send back those that have not been, all of them or none."""
        due = [
            (letter, origin)
            for letter in letters
            if (origin := find_origin(letter.headers)) is not None and self._is_due(letter, origin)
        ]
        if not due:
            return
        offsets: dict[str, dict[TopicPartition, int]] = {}
        with self._producer.transaction():
            for letter, (topic, headers) in due:
                self._producer.send(topic, letter.value, letter.key, headers=headers)
                offsets.setdefault(topic, {})[_place(letter)] = letter.offset + 1
            for topic, done in offsets.items():
                self._producer.send_offsets(done, retry_group(self._letters_topic, topic))
        self.counts.update(origin.topic for _, origin in due)

    def _is_due(self, letter: "Record", origin: RecordOrigin) -> bool:
        if self._topic not in (None, origin.topic):
            return False
        if origin.topic not in self._done:
            self._done[origin.topic] = self._read_done(origin.topic)
        return letter.offset >= self._done[origin.topic].get(_place(letter), 0)

    def _read_done(self, topic: str) -> dict[TopicPartition, int]:
        group = retry_group(self._letters_topic, topic)
        found = self._admin.list_group_offsets(group, require_stable=True)
        for at in found.values():
            if isinstance(at, KafkaError):
                raise at
        return {key: at.offset for key, at in found.items() if isinstance(at, OffsetAndMetadata)}


def _place(record: "Record") -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _find_ends(admin: Admin, letters_topic: str, app_name: str) -> dict[TopicPartition, int]:
    topic = admin.describe_topics([letters_topic])[letters_topic]
    if isinstance(topic, KafkaError):
        if topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise PipelineError(
                f"there is no topic {letters_topic}: app {app_name} has no dead letters, or "
                "another name"
            )
        raise topic
    keys = [TopicPartition(letters_topic, number) for number in range(len(topic.partitions))]
    ends = admin.list_offsets(dict.fromkeys(keys, "latest"), isolation_level="read_committed")
    found = {}
    for key, at in ends.items():
        if isinstance(at, KafkaError):
            raise at
        found[key] = at.offset
    return found
