"""What topics' settings add up to."""

import pytest

from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.runtime import log_configs
from moldau.runtime.log_configs import TopicConfigs


def test_topics_that_are_alike_share_it_and_not_all_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_configs, "KNOWN_MAX", 3)
    configs = TopicConfigs(lambda _: {})
    configs.use(broker_settings(BrokerLayers({})))
    first = configs.of({"retention.ms": "1"})
    assert configs.of({"retention.ms": "1"}) is first
    for number in range(2, 10):
        assert configs.of({"retention.ms": str(number)})[0].retention_ms == number
        assert len(configs._known) <= 3
