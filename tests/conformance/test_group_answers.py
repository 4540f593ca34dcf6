"""The same requests to coordinators, answered by Apache Kafka 4.3.1 and by us.

With MOLDAU_CONFORMANCE_BROKER=apache both are Apache Kafka: the script itself is what is tested.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final

import pytest

from tests.conformance.answers.questioner import Questioner, served_versions
from tests.conformance.answers.setting import SETTINGS, prepare
from tests.conformance.brokers import IS_APACHE, RunningBroker, run_apache, run_moldau
from tests.wire import Wire

# How many answers each script has, at least.
SCRIPTS: Final = {
    "classic": 250,
    "offsets": 390,
    "consumer": 140,
    "transactions": 350,
    "share": 90,
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningBroker, ...]]:
    runs = (run_apache, run_apache if IS_APACHE else run_moldau)
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(run(tmp_path_factory.mktemp("node"), SETTINGS)) for run in runs
        )


@pytest.mark.parametrize("script", SCRIPTS)
def test_answers_are_the_same(brokers: tuple[RunningBroker, ...], script: str) -> None:
    kafkas, ours = answers(brokers, script)
    assert kafkas.keys() == ours.keys()
    assert len(kafkas) >= SCRIPTS[script]
    told = [
        f"{name}\n  " + "\n  ".join(differences(kafkas[name], ours[name]))
        for name in kafkas
        if kafkas[name] != ours[name]
    ]
    assert not told, f"{len(told)} answers differ:\n" + "\n".join(told)


def differences(kafkas: Any, ours: Any, place: str = "") -> Iterator[str]:
    """Say where two answers differ, and nothing of where they are the same."""
    match kafkas, ours:
        case dict(), dict():
            for name in kafkas:
                yield from differences(kafkas[name], ours[name], f"{place}.{name}")
        case list(), list() if len(kafkas) == len(ours):
            for number, (theirs, our) in enumerate(zip(kafkas, ours, strict=True)):
                yield from differences(theirs, our, f"{place}[{number}]")
        case list(), list():
            yield f"{place}: only Kafka: {[item for item in kafkas if item not in ours]}"
            yield f"{place}: only ours: {[item for item in ours if item not in kafkas]}"
        case _ if kafkas != ours:
            yield f"{place}: Kafka: {kafkas}, ours: {ours}"


def answers(brokers: tuple[RunningBroker, ...], script: str) -> list[Mapping[str, Any]]:
    with Wire(brokers[0].host, brokers[0].port) as wire:
        versions = served_versions(wire)
    both = []
    for broker in brokers:
        asked = Questioner(broker, versions)
        try:
            prepare(asked)
            import_module(f"tests.conformance.answers.{script}").ask(asked)
        finally:
            asked.close()
        both.append(asked.answers)
    return both
