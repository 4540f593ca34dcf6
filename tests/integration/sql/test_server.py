"""The server at a broker: what it remembers, who has it, and what becomes of it when it is killed.

Engines and the runner of queries are those of tests; everything else is real.
"""

import pytest

import moldau as client
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.ownership import OwnedError, find_owner
from moldau.pipelines.sql.catalog.topic import CatalogTopic
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.pipelines.views.client import ServerRefusedError
from moldau.testing import Broker
from tests.sql_fakes import Fakes
from tests.sql_servers import (
    DEADLINE_SECONDS,
    SHOP,
    check_takeover,
    execute,
    rows_of,
    sql_process,
    sql_server,
    wait_until,
)


def test_what_was_defined_comes_back(moldau: Broker) -> None:
    first, second = Fakes(), Fakes()
    with sql_server(moldau.bootstrap_servers, first) as server:
        execute(server, SHOP)
        assert list(first.runner.running) == ["CTAS_TOTALS_1"]
        before = rows_of(server, "DESCRIBE EXTENDED totals; SHOW STREAMS;")
    assert first.runner.running == {}
    assert moldau.topics() == {
        "_moldau_sql_default": 1,
        "orders": 2,
        "totals": 1,
        "enriched": 1,
    } | {name: count for name, count in moldau.topics().items() if name.startswith("__")}

    with sql_server(moldau.bootstrap_servers, second) as server:
        wait_until(lambda: second.runner.running, "what is to run runs")
        assert list(second.runner.running) == ["CTAS_TOTALS_1"]
        assert second.views.kept == ["totals"]
        assert rows_of(server, "DESCRIBE EXTENDED totals; SHOW STREAMS;") == before
        assert execute(server, "DROP TABLE totals DELETE TOPIC")[0]["message"] == (
            "Table totals dropped, with query CTAS_TOTALS_1; topic totals deleted"
        )
        assert "totals" not in moldau.topics()


def test_rows_are_inserted_and_topics_are_printed(moldau: Broker) -> None:
    with sql_server(moldau.bootstrap_servers, Fakes()) as server:
        declare = "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT) WITH (topic='t', partitions=1);"
        execute(server, declare + "INSERT INTO t VALUES (1, 10), (258, NULL)")
        assert [row[1:] for row in rows_of(server, "PRINT t FROM BEGINNING LIMIT 2")] == [
            [0, 0, "1", '{"n":10}'],
            [0, 1, "258", '{"n":null}'],
        ]
        with client.Producer(moldau.bootstrap_servers) as producer:
            for number in range(6):
                producer.send("plain", b"%d" % number, timestamp_ms=1_767_225_600_000)
        rows = rows_of(server, "PRINT plain FROM BEGINNING INTERVAL 2 LIMIT 3")
        assert rows == [["2026-01-01T00:00:00Z", 0, each, None, str(each)] for each in (0, 2, 4)]
        with pytest.raises(ServerRefusedError, match=r"topic plan: did you mean plain\?$"):
            execute(server, "PRINT plan")


def test_print_begins_at_the_end_and_ends_with_its_client(moldau: Broker) -> None:
    with (
        sql_server(moldau.bootstrap_servers, Fakes()) as server,
        client.Producer(moldau.bootstrap_servers) as producer,
    ):
        producer.send("plain", b"before").result()
        answers = ServerClient(server.address).execute("PRINT plain")
        assert "columns" in next(answers)
        producer.send("plain", b"after").result()
        assert next(answers)["row"][4] == "after"
        answers.close()


def test_a_topic_that_is_not_there_is_not_made_by_mistake(moldau: Broker) -> None:
    moldau.create_topic("orders", partitions=1)
    with sql_server(moldau.bootstrap_servers, Fakes()) as server:
        with pytest.raises(ServerRefusedError) as caught:
            execute(server, "CREATE STREAM s (a INT) WITH (topic='order')")
        assert str(caught.value) == (
            "there is no topic order: did you mean orders? "
            "With partitions=1, or more, it is created"
        )
        rows = rows_of(server, "CREATE STREAM o (a INT) WITH (topic='orders'); SHOW TOPICS")
        assert rows == [["orders", 1, 1, "o"]]


def test_the_second_server_says_who_is_first(moldau: Broker) -> None:
    with sql_server(moldau.bootstrap_servers, Fakes()) as first:
        execute(first, SHOP)
        with (
            pytest.raises(OwnedError, match=f"is run by the server at {first.address} "),
            sql_server(moldau.bootstrap_servers, Fakes()),
        ):
            pass
        # Another service is another one's.
        with sql_server(moldau.bootstrap_servers, Fakes(), service="other") as other:
            assert rows_of(other, "SHOW STREAMS") == []
        owner = find_owner(moldau.bootstrap_servers, "default")
        assert owner is not None
        assert owner.address == first.address
    assert find_owner(moldau.bootstrap_servers, "default") is None


def test_a_server_that_loses_its_service_ends(moldau: Broker) -> None:
    with sql_server(moldau.bootstrap_servers, Fakes()) as server:
        execute(server, SHOP)
        with client.Admin(moldau.bootstrap_servers) as admin:
            admin.remove_members("_moldau_sql_default")
        reason = server.wait(DEADLINE_SECONDS)
        assert reason is not None
        assert reason.startswith("service default is lost: ")


def test_a_server_that_was_fenced_ends(moldau: Broker) -> None:
    with sql_server(moldau.bootstrap_servers, Fakes()) as server:
        execute(server, SHOP)
        with CatalogTopic(moldau.bootstrap_servers, "default"):
            with pytest.raises(ServerRefusedError, match="another server writes to"):
                execute(server, "DROP TABLE totals")
            reason = server.wait(DEADLINE_SECONDS)
        assert reason == "another server writes to _moldau_sql_default now, this one ends"


def test_a_port_that_is_taken_is_named(moldau: Broker) -> None:
    with sql_server(moldau.bootstrap_servers, Fakes()) as server:
        port = int(server.address.rpartition(":")[2])
        with (
            pytest.raises(PipelineError, match=f"cannot listen at 127.0.0.1:{port}: Address"),
            sql_server(moldau.bootstrap_servers, Fakes(), service="other", port=port),
        ):
            pass


def test_a_server_that_was_killed_is_replaced(moldau: Broker) -> None:
    with sql_process(moldau.bootstrap_servers) as process:
        check_takeover(moldau.bootstrap_servers, process)
    with CatalogTopic(moldau.bootstrap_servers, "default") as topic:
        live = dict(topic.read())
    assert {key: value for key, value in live.items() if value is not None} == {
        "sequence": {"last": 2}
    }
