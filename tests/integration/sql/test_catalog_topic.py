"""The catalog's topic at a broker: written, compacted or not, read back, and fenced."""

import json

import pytest

import moldau as client
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.topic import CatalogLostError, CatalogTopic
from moldau.testing import Broker


def test_what_was_written_is_read_back(moldau: Broker) -> None:
    with CatalogTopic(moldau.bootstrap_servers, "default") as topic:
        assert list(topic.read()) == []
        topic.append([("relation/a", {"n": 1}), ("sequence", {"last": 1})])
        topic.append([("relation/a", None)])
    with CatalogTopic(moldau.bootstrap_servers, "default") as topic:
        assert list(topic.read()) == [
            ("relation/a", {"n": 1}),
            ("sequence", {"last": 1}),
            ("relation/a", None),
        ]
    with client.Admin(moldau.bootstrap_servers) as admin:
        assert len(admin.list_topics()["_moldau_sql_default"].partitions) == 1


def test_a_server_that_was_replaced_writes_nothing_more(moldau: Broker) -> None:
    with (
        CatalogTopic(moldau.bootstrap_servers, "default") as old,
        CatalogTopic(moldau.bootstrap_servers, "default") as new,
        CatalogTopic(moldau.bootstrap_servers, "another") as other,
    ):
        with pytest.raises(CatalogLostError, match="another server writes to _moldau_sql_default"):
            old.append([("relation/a", {"of": "the old one"})])
        new.append([("relation/a", {"of": "the new one"})])
        other.append([("relation/b", {"of": "another service"})])
        assert list(new.read()) == [("relation/a", {"of": "the new one"})]


def test_what_a_killed_server_left_open_is_not_there(moldau: Broker) -> None:
    with CatalogTopic(moldau.bootstrap_servers, "default") as topic:
        topic.append([("relation/a", {"n": 1})])
    half = client.Producer(moldau.bootstrap_servers, transactional_id="_moldau_sql_default")
    half.init_transactions()
    half.begin_transaction()
    value = json.dumps({"n": 2}).encode()
    half.send("_moldau_sql_default", value, b"relation/a", partition=0).result()
    half.hand_over_transaction()
    half.close()
    with CatalogTopic(moldau.bootstrap_servers, "default") as topic:
        assert list(topic.read()) == [("relation/a", {"n": 1})]


def test_a_topic_that_would_forget_is_refused(moldau: Broker) -> None:
    moldau.create_topic("_moldau_sql_default", partitions=1)
    with pytest.raises(PipelineError, match=r"has cleanup\.policy=delete, and would forget"):
        CatalogTopic(moldau.bootstrap_servers, "default")
    moldau.create_topic("_moldau_sql_wide", partitions=2)
    with pytest.raises(PipelineError, match="has several partitions"):
        CatalogTopic(moldau.bootstrap_servers, "wide")
