"""UnregisterBroker through the broker."""

from moldau.broker.handlers.unregister_broker import handle_unregister_broker
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.unit.broker.administration import Administration


def test_known_and_unknown() -> None:
    admin = Administration(brokers=(1, 2))
    answer = admin.ask(handle_unregister_broker, UnregisterBrokerRequest(broker_id=2))
    assert answer.error_code == 0
    assert admin.broker.image.brokers.find(2) is None
    answer = admin.ask(handle_unregister_broker, UnregisterBrokerRequest(broker_id=2))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert answer.error_message
