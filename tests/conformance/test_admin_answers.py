"""The same requests of an administrator, answered by Apache Kafka 4.3.1 and by us."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Message, Struct
from tests.conformance.admin_script import administer
from tests.conformance.brokers import run_apache, run_moldau
from tests.conformance.security_script import ask_about_security
from tests.wire import Wire

SETTINGS: Final = {"num.partitions": "1"}

# What differs by nature: words, places, times and what is drawn by lot. Only whether they are
# there is compared.
NATURE: Final = {
    "client_instance_id",
    "cluster_id",
    "documentation",
    "finalized_features_epoch",
    "high_watermark",
    "host",
    "last_caught_up_timestamp",
    "last_fetch_timestamp",
    "log_dir",
    "log_end_offset",
    "port",
    "replica_directory_id",
    "subscription_id",
    "topic_id",
    "total_bytes",
    "usable_bytes",
}
# Kafka says many of these with null, an empty text or a text where we say another of the three.
IGNORED: Final = {"error_message"}
# What we answer otherwise, and a test below says how.
OURS: Final = {"MetadataRequest v13: created now"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Message, Message]]:
    both = []
    for run in (run_apache, run_moldau):
        directory: Path = tmp_path_factory.mktemp("node")
        with run(directory, SETTINGS) as broker, Wire(broker.host, broker.port) as wire:
            answered = administer(wire, str(directory / "data"))
            both.append({**answered, **ask_about_security(wire)})
    kafkas, ours = both
    assert kafkas.keys() == ours.keys()
    return {name: (kafkas[name], ours[name]) for name in kafkas}


def test_answers_are_the_same(answers: Mapping[str, tuple[Message, Message]]) -> None:
    assert len(answers) > 300
    differences = {}
    for name, (kafkas, our) in answers.items():
        theirs, ours = _shown(kafkas), _shown(our)
        if theirs != ours and name not in OURS:
            differences[name] = f"\n  Kafka: {theirs}\n  ours:  {ours}"
    told = [name + difference for name, difference in differences.items()]
    assert not told, f"{len(told)} answers differ:\n" + "\n".join(told)


def test_a_topic_is_there_when_its_creation_is_answered(
    answers: Mapping[str, tuple[Message, Message]],
) -> None:
    """Kafka answers before it has created the topic, and has the client ask again."""
    kafkas, ours = answers["MetadataRequest v13: created now"]
    [theirs] = kafkas.topics
    assert theirs.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert _shown(ours) == _shown(answers["MetadataRequest v13: created before"][0])


def test_features_are_refused_in_the_same_words(
    answers: Mapping[str, tuple[Message, Message]],
) -> None:
    texts = {
        name: [
            (_without_latest_level(each.error_message), [row.error_message for row in each.results])
            for each in both
        ]
        for name, both in answers.items()
        if name.startswith("UpdateFeaturesRequest")
    }
    assert len(texts) > 60
    assert {name: both for name, both in texts.items() if both[0] != both[1]} == {}


def _without_latest_level(text: str | None) -> str | None:
    """Leave out the latest level of metadata.version, which is that of 4.4 here."""
    return text and re.sub(r"(feature metadata\.version.* versions 7)-\d+", r"\1", text)


def test_what_security_would_do_is_refused_in_the_same_words(
    answers: Mapping[str, tuple[Message, Message]],
) -> None:
    texts = {
        name: [sorted(map(str, _texts(each))) for each in both]
        for name, both in answers.items()
        if re.match(r"\w+(Acls|ClientQuotas|UserScramCredentials)Request", name)
    }
    assert len(texts) > 200
    assert {name: both for name, both in texts.items() if both[0] != both[1]} == {}


def _texts(value: Any) -> Iterator[str | None]:
    """Walk the error messages of an answer."""
    if isinstance(value, Struct):
        for field in value._fields:
            part = getattr(value, field.name)
            if field.name == "error_message":
                yield part
            else:
                yield from _texts(part)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _texts(item)


def test_streams_groups_are_not_offered(answers: Mapping[str, tuple[Message, Message]]) -> None:
    for version in (3, 4):
        kafkas, ours = answers[f"ApiVersionsRequest v{version}: features"]
        assert "streams.version" in {each.name for each in kafkas.finalized_features}
        assert not any(_is_not_served(each) for each in ours.supported_features)
        assert not any(_is_not_served(each) for each in ours.finalized_features)


def _shown(value: Any) -> Any:
    """Return an answer without what differs by nature; the order of lists means nothing."""
    if isinstance(value, Struct):
        return {
            field.name: (
                _is_there(getattr(value, field.name))
                if field.name in NATURE
                else _shown(getattr(value, field.name))
            )
            for field in value._fields
            if field.name not in IGNORED
        }
    if isinstance(value, tuple | list):
        shown = (
            _shown(item) for item in value if not (_came_with_44(item) or _is_not_served(item))
        )
        return sorted(shown, key=repr)
    return value


def _came_with_44(item: object) -> bool:
    """Whether it is a setting that Kafka 4.3 does not have."""
    return str(getattr(item, "name", "")).startswith("errors.deadletterqueue.")


def _is_not_served(item: object) -> bool:
    """Whether it is a feature of Kafka's whose requests are not served here."""
    return getattr(item, "name", "") == "streams.version"


def _is_there(value: object) -> bool:
    return value not in (None, "", bytes(16), -1, 0)
