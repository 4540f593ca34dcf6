import subprocess
import sys

import pytest

from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import API_VERSIONS, APIS, Api, api, api_of
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.stored.cluster_metadata import PartitionRecord
from tests.strategies import all_messages


def test_keys_ascend_and_lead_to_their_api() -> None:
    keys = [each.key for each in APIS]
    assert keys == sorted(set(keys))
    assert all(api(each.key) is each for each in APIS)


def test_kafkas_keys_are_all_there_but_those_of_zookeeper() -> None:
    assert [each.key for each in APIS] == [key for key in range(95) if key not in range(4, 8)]


@pytest.mark.parametrize("key", [-1, 4, 95])
def test_an_unknown_key_is_a_protocol_error_that_names_it(key: int) -> None:
    with pytest.raises(ProtocolError, match=f"no API has key {key}"):
        api(key)


@pytest.mark.parametrize("each", APIS, ids=lambda each: each.name)
def test_the_table_says_what_the_declarations_say(each: Api) -> None:
    for cls in (each.request_class, each.response_class):
        assert cls._api_key == each.key
        assert cls._versions == (each.first, each.last)
        assert cls._flexible == each.flexible
        assert api_of(cls) is each
    assert each.request_class.__name__ == f"{each.name}Request"
    assert each.response_class.__name__ == f"{each.name}Response"
    assert each.listeners
    assert set(each.listeners) <= {"broker", "controller"}


def test_every_declared_request_and_response_is_in_the_table() -> None:
    declared = {
        cls
        for cls in all_messages()
        if cls.__module__.startswith("moldau.protocol.messages.") and cls._api_key is not None
    }
    assert declared == {cls for each in APIS for cls in (each.request_class, each.response_class)}


def test_only_two_phase_commit_is_unstable() -> None:
    assert [(each.name, each.last) for each in APIS if each.last != each.last_stable] == [
        ("InitProducerId", 6)
    ]


def test_header_versions() -> None:
    fetch = api_of(FetchResponse)
    assert [fetch.request_header_version(version) for version in (4, 11, 12)] == [1, 1, 2]
    assert [fetch.response_header_version(version) for version in (4, 11, 12)] == [0, 0, 1]


def test_api_versions_is_answered_with_the_oldest_header() -> None:
    api_versions = api(API_VERSIONS)
    assert [api_versions.request_header_version(version) for version in (2, 3)] == [1, 2]
    assert {api_versions.response_header_version(version) for version in range(6)} == {0}


def test_sasl_handshake_is_never_flexible() -> None:
    assert api(17).request_header_version(1) == 1
    assert api(17).response_header_version(1) == 0


def test_versions_at_the_edges() -> None:
    fetch = api_of(FetchRequest)
    assert [fetch.has_version(version) for version in (3, 4, 18, 19)] == [False, True, True, False]


def test_a_stored_record_belongs_to_no_api() -> None:
    with pytest.raises(TypeError, match="PartitionRecord"):
        api_of(PartitionRecord)


def test_messages_load_on_first_use() -> None:
    program = (
        "import sys; from moldau.protocol.apis import api; "
        "loaded = lambda: [m for m in sys.modules if m.startswith('moldau.protocol.messages.')]; "
        "assert not loaded(), loaded(); api(0).request_class; "
        "assert loaded() == ['moldau.protocol.messages.produce'], loaded()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
