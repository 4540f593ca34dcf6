"""A slow reader beside fast ones: no response ever carries bytes that were meant for another."""

import socket
import threading
from collections.abc import Iterator

from moldau._native.records import Record, read_batches
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from moldau.records.batch import build_batch, read_records, validate
from tests.conformance.brokers import RunningBroker
from tests.wire import FETCH, SECONDS_MAX, Wire, whole_batches

TOPIC = "slow-reader"
PARTITIONS = 4
BATCHES = 120  # of 70 KB in each partition: more than sockets hold
PIECE = 256 << 10
TIME = 1_700_000_000_000


def fill(wire: Wire) -> None:
    """Let every value tell where it belongs."""
    wire.create_topic(TOPIC, PARTITIONS)
    for partition in range(PARTITIONS):
        for batch in range(BATCHES):
            records = [
                Record(n, TIME, b"%d" % partition, b"%d %d %d " % (partition, batch, n) * 1000, [])
                for n in range(10)
            ]
            assert wire.produce(TOPIC, bytes(build_batch(records)), partition).error_code == 0


def check(data: bytes, partition: int) -> int:
    """Check the checksum and the place of every record; return how many there are."""
    list(validate(data))
    count = 0
    for batch in read_batches(data):
        for record in read_records(data, batch):
            place = b"%d %d %d " % (partition, record.offset // 10, record.offset % 10)
            assert record.key == b"%d" % partition
            assert record.value == place * 1000
            count += 1
    return count


def fetch_request(partition: int, offset: int) -> FetchRequest:
    wanted = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=BATCHES * 200_000
    )
    return FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=1 << 30,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )


class FastReader(threading.Thread):
    """Fetches its partition from changing offsets until it is told to stop."""

    def __init__(self, broker: RunningBroker, partition: int) -> None:
        super().__init__()
        self.broker, self.partition = broker, partition
        self.fetched = threading.Semaphore(0)
        self.stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with Wire(self.broker.host, self.broker.port) as wire:
                while not self.stopping.is_set():
                    for offset in range(0, BATCHES * 10, 70):
                        fetched = wire.fetch(TOPIC, offset, self.partition)
                        assert check(whole_batches(fetched), self.partition) > 0
                        self.fetched.release()
        except BaseException as error:  # noqa: BLE001, it is raised where it is waited for
            self.failure = error
            self.fetched.release()

    def wait_for_fetches(self, count: int) -> None:
        for _ in range(count):
            assert self.fetched.acquire(timeout=SECONDS_MAX)
            if self.failure:
                raise self.failure


def read_slowly(broker: RunningBroker, partition: int, fast: list[FastReader]) -> Iterator[bytes]:
    """Ask for everything twice at once, then take it in pieces, while the others read on."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.settimeout(SECONDS_MAX)
        connection.connect((broker.host, broker.port))
        for correlation_id in (1, 2):
            request = fetch_request(partition, 0)
            pieces = encode_request(request, FETCH, correlation_id=correlation_id, client_id="slow")
            connection.sendall(b"".join(pieces))
        received = bytearray()
        for correlation_id in (1, 2):
            while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4]):
                for reader in fast:
                    reader.wait_for_fetches(1)
                piece = connection.recv(PIECE)
                assert piece, "the broker closed the connection"
                received += piece
            end = 4 + int.from_bytes(received[:4])
            answered, answer = decode_response(bytes(received[4:end]), FetchResponse, FETCH)
            assert answered == correlation_id
            yield whole_batches(answer.responses[0].partitions[0])
            del received[:end]


def test_a_slow_reader_beside_fast_ones_gets_its_own_bytes(
    broker: RunningBroker, wire: Wire
) -> None:
    fill(wire)
    fast = [FastReader(broker, partition) for partition in range(1, PARTITIONS)]
    for reader in fast:
        reader.start()
    try:
        for data in read_slowly(broker, 0, fast):
            assert check(data, 0) == BATCHES * 10
    finally:
        for reader in fast:
            reader.stopping.set()
        for reader in fast:
            reader.join(SECONDS_MAX)
    assert [reader.failure for reader in fast] == [None] * len(fast)
