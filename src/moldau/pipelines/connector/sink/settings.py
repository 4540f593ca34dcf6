"""What a sink was told by its options, checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from moldau.client.errors import ClientError
from moldau.client.producer_settings import load_producer_settings
from moldau.client.settings import ClientSettings, kafka_name
from moldau.pipelines.connector.options import Options
from moldau.pipelines.connector.sink.columns import check_columns
from moldau.pipelines.errors import OptionError

EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"
DECISION_TOPIC: Final = "__moldau_sink_decisions"
DECIDED_HERE: Final = (
    "transactional.id",
    "transaction.timeout.ms",
    "transaction.two.phase.commit.enable",
)
OF_SPARK: Final = ("checkpointLocation", "queryName", "path")


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Where rows go, and with which guarantee; it travels to the tasks."""

    producer_config: Mapping[str, str]
    topic: str | None
    """None: each row names its own."""
    columns: tuple[str, ...]
    is_exactly_once: bool
    transaction_timeout_ms: int | None
    """None: as long as the broker allows."""
    decision_topic: str
    sink: str
    """Which of several writes in one batch it is."""

    @property
    def client_config(self) -> dict[str, str]:
        """The settings that every client has, not only a producer."""
        known = {kafka_name(field.name) for field in fields(ClientSettings)}
        return {name: text for name, text in self.producer_config.items() if name in known}


def load_sink_settings(texts: Mapping[str, str], types: Mapping[str, str]) -> SinkSettings:
    """Read options, and check them with the columns (name to type, as Spark writes it)."""
    options = Options(texts)
    config = options.client_config(*DECIDED_HERE)
    topic = (options.text("topic") or "").strip() or None
    settings = SinkSettings(
        producer_config=config,
        topic=topic,
        columns=check_columns(types, has_topic=topic is not None),
        is_exactly_once=options.choice("delivery", (EXACTLY_ONCE, AT_LEAST_ONCE), EXACTLY_ONCE)
        == EXACTLY_ONCE,
        transaction_timeout_ms=options.number("transactionTimeoutMs", least=1000),
        decision_topic=options.text("decisionTopic", DECISION_TOPIC) or DECISION_TOPIC,
        sink=options.text("sink") or topic or "",
    )
    options.check_unknown(*OF_SPARK)
    # As the tasks will make it, so that what does not go together is told before.
    extra = {"transactional_id": "any"} if settings.is_exactly_once else {}
    try:
        load_producer_settings(None, config, extra)
    except ClientError as error:
        raise OptionError(f"option kafka.{error}") from None
    return settings
