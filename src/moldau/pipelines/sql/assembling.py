"""Puts a server together: who answers, who runs, who keeps views, each made when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from moldau import Admin
from moldau.pipelines.sql.kafka_cluster import KafkaCluster
from moldau.pipelines.sql.lazy_spark import LazyEngine, LazyRunner, Once
from moldau.pipelines.sql.local.questions import LocalQuestions
from moldau.pipelines.sql.lookups.kept_views import KeptViews, WatchedCluster
from moldau.pipelines.sql.lookups.view_engine import ViewEngine
from moldau.pipelines.sql.ports import Engine, Runner
from moldau.pipelines.sql.service import Ports
from moldau.pipelines.sql.topic_printer import TopicPrinter

DATA: Final = "data/sql"


@dataclass(frozen=True, slots=True)
class Setup:
    """Where a server's things are."""

    servers: str
    say: Callable[[str], None]
    """Hears what whoever has started the server should know."""
    service: str = "default"
    data: Path = Path(DATA)
    """A folder of this machine: by cluster, views, and checkpoints unless they are elsewhere."""
    checkpoints: str | None = None
    """A folder or a URI that all of Spark's workers reach."""
    master: str | None = None
    is_quiet: bool = True
    """Whether Spark and its workers keep to themselves what an error says as well."""


def make_ports(setup: Setup) -> Ports:
    """Return all that a service needs; nothing of Spark is imported."""
    config = {"bootstrap.servers": setup.servers}
    cluster = _cluster_id(setup.servers)
    folder = setup.data / cluster
    views = KeptViews(folder / "views" / setup.service, config, setup.say)
    local = LocalQuestions(config)

    def make_engine() -> Engine:
        from moldau.pipelines.sql.spark.engine import SparkEngine  # noqa: PLC0415

        return SparkEngine(
            setup.service,
            setup.servers,
            master=setup.master,
            infer=local.infer,
            is_quiet=setup.is_quiet,
        )

    def make_runner() -> Runner:
        from moldau.pipelines.sql.spark.runner import SparkRunner  # noqa: PLC0415

        return SparkRunner(
            setup.service,
            setup.servers,
            checkpoints=str(folder / "checkpoints")
            if setup.checkpoints is None
            else f"{setup.checkpoints.rstrip('/')}/{cluster}",
            master=setup.master,
            say=setup.say,
            is_quiet=setup.is_quiet,
        )

    return Ports(
        WatchedCluster(KafkaCluster(setup.servers), views),
        LazyRunner(Once(make_runner), setup.say),
        views,
        TopicPrinter(setup.servers),
        [ViewEngine(views), local, LazyEngine(Once(make_engine))],
    )


def _cluster_id(servers: str) -> str:
    """Return whose offsets checkpoints and views have: another cluster's mean nothing here."""
    with Admin(servers) as admin:
        return admin.describe_cluster().cluster_id
