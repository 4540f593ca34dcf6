from moldau.broker.broker import Broker
from moldau.broker.calls import Call, Endpoint, Peer
from moldau.broker.handlers.api_versions import handle_api_versions, unsupported_version
from moldau.broker.served import HANDLERS
from moldau.kernel.clock import Instant
from moldau.metadata.features import SUPPORTED
from moldau.protocol.apis import API_VERSIONS
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.brokers import bare_broker


class Nobody:
    room = 0

    def answered(self, *_: object) -> None:
        raise AssertionError

    def hang_up(self, *_: object) -> None:
        raise AssertionError

    def failed(self, *_: object) -> None:
        raise AssertionError


def ask(
    version: int, broker: Broker | None = None, **fields: object
) -> tuple[ApiVersionsResponse, Peer]:
    peer = Peer("PLAINTEXT", "127.0.0.1", Endpoint("localhost", 9092))
    call = Call(API_VERSIONS, version, 1, None, peer, Instant(0.0, 0), Nobody())
    given = {"client_software_name": "librdkafka", "client_software_version": "2.10.0"} | fields
    request = ApiVersionsRequest(**given)
    broker = broker or bare_broker()
    broker.metadata_offset = 42
    return handle_api_versions(broker, call, request), peer


def test_what_is_served_is_advertised_and_nothing_else() -> None:
    response, _ = ask(4, bare_broker(moldau_metrics_listener="localhost:0"))
    advertised = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert advertised == {key: (each.first, each.api.last_stable) for key, each in HANDLERS.items()}
    assert advertised[API_VERSIONS] == (0, 5)
    # KAFKA-18659: librdkafka wants Produce from 0. InitProducerId 6 needs two-phase commit.
    for key, versions in ((0, (0, 13)), (1, (4, 18)), (22, (0, 5))):
        assert advertised.get(key, versions) == versions


def test_two_phase_commit_is_told_of_where_it_is_enabled() -> None:
    response, _ = ask(4, bare_broker(transaction_two_phase_commit_enable="true"))
    (versions,) = [each for each in response.api_keys if each.api_key == 22]
    assert versions.max_version == 6


def test_clients_are_asked_for_their_metrics_only_where_somebody_can_read_them() -> None:
    response, _ = ask(4)
    left_out = set(HANDLERS) - {each.api_key for each in response.api_keys}
    assert {HANDLERS[key].api.module for key in left_out} == {
        "get_telemetry_subscriptions",
        "push_telemetry",
    }


def test_every_handler_that_is_named_is_there() -> None:
    for served in HANDLERS.values():
        served.load()
        assert callable(served.handler)


def test_features_and_their_epoch() -> None:
    response, _ = ask(4)
    offered = {each.name for each in response.supported_features}
    assert offered == set(SUPPORTED) - {"streams.version"}, "its requests are not served"
    assert [(each.name, each.max_version_level) for each in response.finalized_features] == [
        ("metadata.version", 7)
    ]
    broker = bare_broker()
    broker.controller.kraft_version = 1  # type: ignore[misc]
    response, _ = ask(4, broker)
    assert ("kraft.version", 1) in [
        (each.name, each.max_version_level) for each in response.finalized_features
    ]
    assert response.finalized_features_epoch == 42
    assert not response.zk_migration_ready


def test_older_java_clients_see_no_feature_that_begins_at_0() -> None:
    response, _ = ask(3)
    assert [each.name for each in response.supported_features] == ["metadata.version"]


def test_the_clients_software_is_remembered_when_it_is_valid() -> None:
    _, peer = ask(3)
    assert (peer.software_name, peer.software_version) == ("librdkafka", "2.10.0")
    for name in ("", "-a", "a-", "a b", "a\n"):
        response, peer = ask(3, client_software_name=name)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert not response.api_keys
        assert peer.software_name == ""
    assert ask(2, client_software_name="", client_software_version="")[0].error_code == 0


def test_a_client_that_meant_another_broker_is_told() -> None:
    here = {"cluster_id": bare_broker().cluster_id, "node_id": 1}
    assert ask(5, **here)[0].error_code == 0
    assert ask(5, **here | {"node_id": 2})[0].error_code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert ask(5, **here | {"cluster_id": "x"})[0].error_code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert ask(5, **here | {"node_id": -1})[0].error_code == ErrorCode.INVALID_REQUEST
    assert ask(5, node_id=1)[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_version_from_the_future_learns_which_there_are() -> None:
    response = unsupported_version()
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    (versions,) = response.api_keys
    assert (versions.api_key, versions.min_version, versions.max_version) == (18, 0, 5)
