"""A broker in the test's process: started, used, restarted, stopped without a trace."""

import asyncio
import gc
import os
import socket
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau._native.records import Record
from moldau.runtime.node import StartRefusedError
from moldau.testing import Broker, BrokerFailedError
from tests.wire import LATEST, Wire

EARLIEST = -2
FD = Path("/proc/self/fd")


def wire(broker: Broker) -> Wire:
    return Wire(broker.host, broker.port)


def produce(broker: Broker, topic: str, *values: bytes) -> int:
    """Produce one batch; return its error."""
    stamp = round(broker.clock.now().timestamp() * 1000)
    records = [Record(n, stamp, None, value) for n, value in enumerate(values)]
    with wire(broker) as client:
        return client.produce(topic, records).error_code


def values(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    with wire(broker) as client:
        return [record.value for record in client.read(topic, count=count)[1]]


def end_offset(broker: Broker, topic: str) -> int:
    with wire(broker) as client:
        return client.list_offset(topic, LATEST).offset


def test_what_is_produced_is_fetched() -> None:
    with Broker() as broker:
        assert broker.bootstrap_servers == f"{broker.host}:{broker.port}"
        topic = broker.topic(partitions=3)
        assert produce(broker, topic, b"a", b"b") == 0
        assert values(broker, topic, 2) == [b"a", b"b"]
        assert broker.topics() == {topic: 3}


def test_nothing_is_left_behind() -> None:
    with Broker():
        pass  # what is imported and opened once
    gc.collect()  # what other tests have left to the collector is not ours
    threads, files = threading.enumerate(), sorted(os.listdir(FD)) if FD.exists() else []
    with Broker() as broker, wire(broker) as client:
        topic = broker.topic()
        client.produce(topic, [Record(0, 0, None, b"v")])
        broker.restart()
        broker.clock.advance("1 day")
        port = broker.port
    assert threading.enumerate() == threads
    assert (sorted(os.listdir(FD)) if FD.exists() else []) == files
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_brokers_have_nothing_to_do_with_each_other() -> None:
    with Broker() as one, Broker() as other:
        assert one.port != other.port
        one.create_topic("t")
        assert (list(one.topics()), list(other.topics())) == (["t"], [])
        one.clock.advance("1 day")
        assert (one.clock.now() - other.clock.now()).total_seconds() > 80_000


def test_it_can_be_started_again() -> None:
    broker = Broker()
    for _ in range(2):
        broker.start()
        broker.create_topic("t")
        broker.stop()
        broker.stop()
    with pytest.raises(RuntimeError, match="does not run"):
        broker.topics()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = broker.port


def test_it_goes_on_while_the_test_waits_in_c() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("made-by-asking", b"v")
        assert producer.flush(30) == 0
        assert broker.topics() == {"made-by-asking": 1}


def test_it_can_be_used_in_a_test_that_has_a_loop() -> None:
    async def test() -> None:
        with Broker() as broker:
            topic = broker.topic()
            reader, writer = await asyncio.open_connection(broker.host, broker.port)
            broker.faults.close_connections()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            assert topic in broker.topics()

    asyncio.run(test())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_are_clients() -> None:
    with Broker() as broker:
        topic = broker.topic()
        held = wire(broker)
        assert held.list_offset(topic, LATEST).offset == 0
        ready, go = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                broker.stop()  # its end is none of the broker's
                produce_from_child(broker, topic)
                os.write(ready[1], b".")
                os.read(go[0], 1)
                status = 0
            finally:
                os._exit(status)
        assert os.read(ready[0], 1) == b"."
        assert values(broker, topic, 1) == [b"child"]
        # The child is still there, and has no copy of a connection that keeps it open.
        broker.faults.close_connections()
        assert held.stream.read() == b""
        held.close()
        broker.restart()
        os.write(go[1], b".")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for each in (*ready, *go):
            os.close(each)


def produce_from_child(broker: Broker, topic: str) -> None:
    with wire(broker) as client:
        assert client.produce(topic, [Record(0, 0, None, b"child")]).error_code == 0


def test_restart_keeps_the_data() -> None:
    with Broker() as broker:
        port = broker.port
        topic = broker.topic(partitions=2)
        empty = broker.topic()
        assert produce(broker, topic, b"a", b"b") == 0
        broker.restart()
        assert broker.port == port
        assert broker.topics() == {topic: 2, empty: 1}
        assert values(broker, topic, 2) == [b"a", b"b"]
        assert produce(broker, topic, b"c") == 0
        assert produce(broker, empty, b"d") == 0
        broker.restart()
        assert values(broker, topic, 3) == [b"a", b"b", b"c"]
        assert values(broker, empty, 1) == [b"d"]


def test_restart_without_the_data() -> None:
    with Broker() as broker:
        port = broker.port
        broker.topic()
        broker.restart(keep_data=False)
        assert broker.topics() == {}
        assert broker.port == port


def test_data_in_a_directory_stay_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data=data) as broker:
        topic = broker.topic()
        assert produce(broker, topic, b"a") == 0
        broker.restart()
        assert values(broker, topic, 1) == [b"a"]
    assert (data / f"{topic}-0").is_dir()
    with Broker(data=str(data)) as broker:
        assert values(broker, topic, 1) == [b"a"]
        broker.restart(keep_data=False)
        assert broker.topics() == {}
    assert not (data / f"{topic}-0").exists()


def test_a_broker_that_fails_by_itself_fails_the_test() -> None:
    broker = Broker().start()

    async def fail() -> None:
        broker._running.hosted.node.failure.set_result(OSError("the disk is on fire"))

    broker._running.call(fail())
    with pytest.raises(BrokerFailedError, match="on fire"):
        broker.stop()
    broker.stop()


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    threads = threading.enumerate()
    broker = Broker(data=tmp_path)
    with pytest.raises(StartRefusedError, match="it is not empty"):
        broker.start()
    assert threading.enumerate() == threads
    (tmp_path / "holiday.jpg").unlink()
    with broker:
        broker.topic()


def test_topics_are_created_as_asked() -> None:
    with Broker() as broker:
        assert broker.create_topic("rivers", configs={"cleanup.policy": "compact"}) == "rivers"
        with pytest.raises(ValueError, match="TOPIC_ALREADY_EXISTS"):
            broker.create_topic("rivers")
        with pytest.raises(ValueError, match=r"INVALID_TOPIC_EXCEPTION"):
            broker.create_topic("no such/name")
        with pytest.raises(ValueError, match=r"INVALID_CONFIG.*retention\.second"):
            broker.topic(retention_second=1)
        with pytest.raises(ValueError, match="INVALID_PARTITIONS"):
            broker.topic(partitions=0)
        assert broker.topic() != broker.topic()


def test_settings_count_until_the_block_ends() -> None:
    with Broker(settings={"num.partitions": 2}) as broker:

        def auto_created(name: str) -> int:
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            producer.produce(name, b"v")
            assert producer.flush(30) == 0
            return broker.topics()[name]

        assert auto_created("a") == 2
        with broker.settings({"num.partitions": "4"}):
            assert auto_created("b") == 4
        assert auto_created("c") == 2
        broker.settings(num_partitions=5)
        assert auto_created("d") == 5


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"num\.partition is not a setting; did you mean num.par"):
        Broker(settings={"num.partition": 2})
    with pytest.raises(ValueError, match=r"num\.partitions"):
        Broker(settings={"num.partitions": "many"})
    with pytest.raises(ValueError, match=r"listeners: chosen by the fixture"):
        Broker(settings={"listeners": "PLAINTEXT://:9092"})
    with Broker(settings={"auto.create.topics.enable": False}) as broker:
        with pytest.raises(ValueError, match=r"log\.retention\.centuries is not a setting"):
            broker.settings(log_retention_centuries=1)
        broker.restart()  # as it was


def test_the_name_of_what_is_missing() -> None:
    import moldau.testing

    with pytest.raises(AttributeError, match="has no attribute 'Cluster'"):
        _ = moldau.testing.Cluster
