"""Settings that came with Kafka 4.4: the tables that all others are derived from are 4.3's."""

from moldau.metadata.settings.declare import Boolean, Text
from moldau.metadata.settings.setting import Settings


class BrokerSince44(Settings):
    """What brokers have since then: where share groups may put dead letters (KIP-1191)."""

    errors_deadletterqueue_auto_create_topics_enable = Boolean(False)
    errors_deadletterqueue_topic_name_prefix = Text("dlq.")


class TopicSince44(Settings):
    """What topics have since then."""

    errors_deadletterqueue_group_enable = Boolean(False)


class GroupSince44(Settings):
    """What groups have since then."""

    errors_deadletterqueue_copy_record_enable = Boolean(False)
    errors_deadletterqueue_topic_name = Text("")
