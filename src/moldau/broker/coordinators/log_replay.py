"""Reading a coordinator's partition from its beginning, a slice per turn of the loop."""

from collections.abc import Callable
from typing import Final

from moldau._native.records import Batch, read_batches
from moldau.broker.ports import Environment, LoadedPieces, LogsPort, Piece
from moldau.coordination.machine import Machine
from moldau.coordination.producer import NO_PRODUCER
from moldau.coordination.stored_record import RecordTypes, decode_record
from moldau.kernel.disk import Buffer, DiskColdError
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import Offset, ProducerId
from moldau.log.errors import OffsetOutOfRangeError
from moldau.log.extents import Isolation
from moldau.log.markers import find_marker
from moldau.records.batch import read_records
from moldau.replication.replica import Replica

SLICE_BYTES: Final = 64 * 1024
"""What is replayed in one turn: about three milliseconds."""

ReplayDone = Callable[[ProtocolError | None], None]


class LogReplay:
    """A replay under way; `then` hears when all is replayed, or why it cannot be.

    Nothing is heard of one that was cancelled, or whose replica leads no longer.
    """

    def __init__(
        self,
        replica: Replica,
        machine: Machine,
        types: RecordTypes,
        logs: LogsPort,
        environment: Environment,
        then: ReplayDone,
    ) -> None:
        self._replica = replica
        self._machine = machine
        self._types = types
        self._logs = logs
        self._environment = environment
        self._then = then
        self._position = Offset(0)
        self._is_cancelled = False
        self.record_count = 0
        self._go_on_soon()

    def cancel(self) -> None:
        """Replay no more."""
        self._is_cancelled = True

    def _go_on_soon(self) -> None:
        self._environment.at(self._environment.now().monotonic, self._go_on)

    def _go_on(self) -> None:
        log = self._replica.log
        if self._is_cancelled or log is None:
            return
        try:
            # Retention may move the start while this reads.
            self._position = max(self._position, log.log_start)
            read = log.read(self._position, bytes_max=SLICE_BYTES, isolation=Isolation.LOG_END)
        except DiskColdError as cold:
            self._logs.warm(self._replica.partition, cold, self._go_on)
            return
        except OffsetOutOfRangeError:
            # What was there is truncated: a new leader epoch comes, and with it another replay.
            return
        if read.extent is None:
            self._then(None)
            return
        self._logs.load([Piece(self._replica.partition, read.extent)], self._loaded)

    def _loaded(self, loaded: LoadedPieces) -> None:
        content = loaded.contents[0]
        if content is None or self._is_cancelled:
            return
        try:
            for batch in read_batches(content, check_crc=False):
                self._replay(content, batch)
                self._position = Offset(batch.last_offset + 1)
        except ProtocolError as error:
            self._then(error)
            return
        finally:
            if loaded.release is not None:
                loaded.release()
        self._go_on_soon()

    def _replay(self, content: Buffer, batch: Batch) -> None:
        producer_id = ProducerId(batch.producer_id)
        if batch.is_control:
            marker = find_marker(batch, content)
            if marker is not None:
                self._machine.end_transaction(producer_id, is_commit=not marker.is_abort)
            return
        for record in read_records(content, batch):
            decoded = decode_record(self._types, record.key, record.value)
            if decoded is not None:
                owner = producer_id if batch.is_transactional else NO_PRODUCER
                self._machine.replay(Offset(record.offset), owner, *decoded)
                self.record_count += 1
