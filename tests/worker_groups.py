"""Which tests of a stage share a worker, and which groups of them begin.

Tests of one file stay together, because they share fixtures. Files that share something expensive
are one group. With two workers, a long group that comes last would leave the other one idle.
"""

from typing import Final

import pytest
from xdist.scheduler import LoadGroupScheduling

GROUPS: Final = {
    "tests/conformance/test_our_consumer.py": "plain Apache Kafka",
    "tests/conformance/test_our_producer.py": "plain Apache Kafka",
    "tests/conformance/test_sql_apache.py": "plain Apache Kafka",
}
"""Files that share more than a worker has anyway, and the group that they are in."""

LONGEST: Final = (
    "tests/conformance/test_our_group_consumer.py",
    "tests/integration/test_package.py",
    "plain Apache Kafka",
    "tests/conformance/test_kafkas_directory.py",
    "tests/conformance/test_kafka_group_tools.py",
    "tests/conformance/test_our_transactions.py",
    "tests/integration/sql/test_shell.py",
    "tests/conformance/test_group_churn.py",
    "tests/conformance/test_data_directory_swap.py",
    "tests/conformance/test_kafka_serves_ours.py",
    "tests/conformance/test_our_share_consumer.py",
    "tests/conformance/test_librdkafka_groups.py",
    "tests/conformance/test_java_groups.py",
    "tests/integration/test_tutorial.py",
    "tests/conformance/test_exactly_once.py",
    "tests/conformance/test_transaction_answers.py",
    "tests/conformance/test_kafka_tools.py",
    "tests/conformance/test_java_consumer_groups.py",
    "tests/integration/test_node.py",
    "tests/conformance/test_clients.py",
    "tests/conformance/test_client_groups.py",
    "tests/unit/protocol/test_kio_oracle.py",
    "tests/conformance/test_handed_over_transactions.py",
    "tests/unit/client/test_membership_model.py",
    "tests/spark/test_sql_queries.py",
    "tests/spark/test_pipeline_run.py",
    "tests/spark/test_masters.py",
    "tests/spark/test_app_aggregates.py",
    "tests/spark/test_sql_kills.py",
    "tests/spark/test_exactly_once.py",
    "tests/spark/test_testing_pipeline.py",
    "tests/spark/test_sql_differential.py",
    "tests/spark/test_jvm_kills.py",
    "tests/spark/test_sql_within.py",
    "tests/spark/test_foreign_joins.py",
    "tests/spark/test_jar_connector.py",
    "tests/spark/test_pipeline_guides.py",
    "tests/spark/test_sql_both.py",
    "tests/spark/test_sql_groups.py",
    "tests/spark/test_sink_kills.py",
    "tests/spark/test_joins.py",
    "tests/spark/test_sql_service.py",
    "tests/spark/test_table_aggregates.py",
    "tests/spark/test_app_launchers.py",
    "tests/spark/test_demo.py",
    "tests/spark/test_app_streams.py",
    "tests/spark/test_sql_engine.py",
    "tests/spark/nexmark/test_nexmark.py",
    "tests/spark/test_sql_having.py",
    "tests/spark/test_sql_generated.py",
)
"""Groups and files by their time, longest first; all others come behind them.

.cache/test-times.json has the longest files of each stage.
"""


class GroupScheduling(LoadGroupScheduling):
    """Hands out a group at a time; a test with a mark `xdist_group` goes by that."""

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        return group_of(nodeid) if scope == nodeid else scope


def group_of(nodeid: str) -> str:
    """Return the group of a test: its file, or the one that its file is in."""
    file = nodeid.split("::", 1)[0]
    return GROUPS.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupScheduling | None:
    """Schedule by groups where xdist is asked for them."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark unit tests, before a stage chooses by marks."""
    if item.nodeid.startswith("tests/unit/"):
        item.add_marker("unit")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest groups first."""
    places = {group: place for place, group in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(group_of(item.nodeid), len(places)))
