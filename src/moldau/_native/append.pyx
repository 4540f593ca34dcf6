"""The append kernel: what an ordinary append touches, from the replica to the disk and back.

Python decides about everything else, with the same pieces: a batch that is not ordinary is declined
here before anything has changed, and a write that is more than pieces for one segment is not begun.
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, uint8_t
from libc.stdlib cimport free, malloc

from moldau._native.log cimport assign_place
from moldau._native.records cimport (
    ATTRIBUTE_CODEC, ATTRIBUTE_TRANSACTIONAL, BATCH_HEADER_SIZE, RecordStats, check_range,
)

from collections import deque

from moldau.kernel.disk import DiskFullError
from moldau.kernel.errors import ProtocolError

cdef extern from "batch.h" nogil:
    enum:
        BATCH_ATTRIBUTES

cdef enum:
    ACKS_ALL = -1
    DECLINED = -1
    ENTRIES_KEPT = 256  # index entries that gather before they are written: recovery makes them anew
    WRITES_KEPT = 64


@cython.final
@cython.freelist(64)
cdef class Place:
    def __init__(self, int64_t offset, int64_t segment_base_offset, int64_t position):
        self.offset = offset
        self.segment_base_offset = segment_base_offset
        self.position = position


cdef class SegmentBase:
    def __init__(self, disk, str path not None, int64_t base_offset):
        self.disk = disk
        self.path = path
        self.base_offset = base_offset

    def note_written(self):
        assert self.tail is not None, f"{self.path} is closed"
        self.count_written(&self.tail.state)

    cdef int count_written(self, const tail_state *written) except -1:
        cdef Tail tail = self.tail
        tail.marked = written[0]
        self.size = written.position
        if tail.entry_count >= ENTRIES_KEPT:
            self.write_entries()
        return 0


cdef class Room:
    def __init__(self, *, int64_t free_bytes):
        self.free_bytes = free_bytes

    def admits(self, int64_t size):
        return self.take(size)

    cdef bint take(self, int64_t size) noexcept:
        if self.free_bytes - size < self.floor_bytes:
            return False
        self.free_bytes -= size
        return True


@cython.final
cdef class StagedLogs:
    def __init__(self):
        self.ends = []

    def __bool__(self):
        return bool(self.ends)

    cdef int add(self, LogEnd end, object now) except -1:
        self.now = now
        if not end.is_staged:
            end.is_staged = True
            self.ends.append(end)
        return 0

    def take(self):
        cdef LogEnd end
        cdef list ends = self.ends
        self.ends = []
        for end in ends:
            end.is_staged = False
        return ends


cdef class LogEnd:
    def __init__(self, list segments not None, int64_t log_start, int64_t synced):
        self.segments = segments
        self.log_start = log_start
        self.synced = synced
        self.epoch = -1
        self.pieces = []
        self.is_plain = True
        self.held_at = -1
        self.high_watermark = log_start

    def __dealloc__(self):
        free(self.writes)

    cdef Tail last_tail(self):
        cdef Tail tail = (<SegmentBase>self.segments[len(self.segments) - 1]).tail
        assert tail is not None, "the last segment is written"
        return tail

    @property
    def tail(self):
        return self.last_tail()

    @property
    def end_offset(self):
        return self.last_tail().state.end_offset

    @property
    def written_offset(self):
        return self.last_tail().marked.end_offset

    @property
    def durable_offset(self):
        return self.durable()

    cdef int64_t durable(self) except? -1:
        if self.held_at >= 0:
            return self.held_at
        return self.synced if self.needs_sync else self.last_tail().marked.end_offset

    # Staging.

    cdef int64_t try_stage(
        self, object data, Py_ssize_t start, Py_ssize_t end, int32_t leader_epoch, object now
    ) except? -2:
        """Stage one batch in data[start:end] and return its offset, or decline."""
        cdef Py_buffer view
        cdef uint8_t *p
        cdef Batch batch
        cdef RecordStats stats
        cdef Tail tail
        cdef int64_t base_offset
        cdef list checked
        if self.ordinary is None or end - start < BATCH_HEADER_SIZE:
            return DECLINED
        tail = self.last_tail()
        PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
        try:
            if start < 0 or end > view.len:
                raise ValueError(f"{start} to {end} is not a range of {view.len} bytes")
            p = <uint8_t *>view.buf + start
            # Before the checksum: the long way computes it for these.
            if p[BATCH_ATTRIBUTES + 1] & (ATTRIBUTE_CODEC | ATTRIBUTE_TRANSACTIONAL):
                return DECLINED
            try:
                checked = check_range(<uint8_t *>view.buf, start, end, True)
            except ProtocolError:
                return DECLINED
            batch, stats = checked[0]
            base_offset = tail.state.end_offset
            if (
                len(checked) != 1
                or not self.is_ordinary(batch, stats, tail, leader_epoch, now[1])
                or not self.enlist_for(batch.size, now)
            ):
                return DECLINED
            assign_place(p, batch, base_offset, leader_epoch)
        finally:
            PyBuffer_Release(&view)
        self.pieces.append(memoryview(data)[start:end])
        tail.add(base_offset + batch.last_offset_delta, batch.max_timestamp, batch.size)
        if batch.producer_id >= 0:
            self.producers.note(batch)
        return base_offset

    cdef bint is_ordinary(
        self, Batch batch, object stats, Tail tail, int32_t leader_epoch, int64_t now_ms
    ) except -1:
        """Say whether a batch needs nothing but its offset and a place at the segment's end."""
        if leader_epoch != self.epoch:
            return False
        if not self.ordinary.admits(batch, stats, True, now_ms):
            return False
        if batch.producer_id >= 0 and not self.producers.admits(batch):
            return False
        batch.base_offset = tail.state.end_offset
        return not tail.must_roll(batch, now_ms)

    def berth_in(self, StagedLogs staged not None, Room room, berth):
        self.staged = staged
        self.room = room
        self.berth = berth

    def enlist(self, int64_t size, now):
        return self.enlist_for(size, now)

    cdef bint enlist_for(self, int64_t size, object now) except -1:
        if self.staged is None or not (self.room is None or self.room.take(size)):
            return False
        self.staged.add(self, now)
        return True

    # Writing.

    def try_write(self):
        cdef SegmentBase segment = self.segments[len(self.segments) - 1]
        if not self.is_plain or not segment.has_files or not self.pieces:
            return False
        assert self.handed_write is None, "one write after the other"
        try:
            segment.disk.append(segment.path, self.pieces)
        except DiskFullError as error:
            raise self.take_back(error) from error
        self.note_dirty(segment)
        self.finish_write(segment)
        return True

    cdef int note_dirty(self, SegmentBase segment) except -1:
        if segment.path not in <dict>self.dirty.files:
            self.dirty.add_segment(segment)
        return 0

    def note_written(self):
        self.finish_write(self.segments[len(self.segments) - 1])

    cdef int finish_write(self, SegmentBase segment) except -1:
        segment.note_written()
        self.pieces.clear()
        self.is_plain = True
        self.producers.mark_all()
        self.note_end(segment.tail.marked.end_offset, segment)
        return 0

    def take_pieces(self):
        cdef list pieces = self.pieces
        self.pieces = []
        return pieces

    # Writing elsewhere.

    @property
    def mean_piece_bytes(self):
        cdef SegmentBase segment = self.segments[len(self.segments) - 1]
        cdef Py_ssize_t count = len(self.pieces)
        if not self.is_plain or not segment.has_files or not count or self.handed_write is not None:
            return 0
        return (segment.tail.state.position - segment.tail.marked.position) // count

    def hand_over(self, write not None):
        assert self.mean_piece_bytes, "there is something that is plain"
        self.handed_write = write
        self.handed_segment = self.segments[len(self.segments) - 1]
        self.handed = self.handed_segment.tail.state
        self.producers.hand_over()
        self.pieces = []

    def end_write(self, error):
        cdef SegmentBase segment = self.handed_segment
        assert segment is not None, "it was handed over"
        self.handed_write = self.handed_segment = None
        if isinstance(error, DiskFullError):
            raise self.take_back(error) from error
        if error is not None:
            raise error
        self.note_dirty(segment)
        segment.count_written(&self.handed)
        self.producers.mark_handed()
        self.note_end(self.handed.end_offset, segment)

    def settle(self):
        # What was staged behind a write may be handed over when that ends.
        while self.handed_write is not None:
            self.handed_write.settle()

    # How far readers see.

    cdef int note_end(self, int64_t offset, SegmentBase segment) except -1:
        cdef write_end *end
        if self.writes == NULL:
            self.writes = <write_end *>malloc(WRITES_KEPT * sizeof(write_end))
            if self.writes == NULL:
                raise MemoryError
        end = &self.writes[(self.first_write + self.write_count) % WRITES_KEPT]
        end.offset = offset
        end.segment_base_offset = segment.base_offset
        end.position = segment.size
        if self.write_count < WRITES_KEPT:
            self.write_count += 1
        else:
            self.first_write = (self.first_write + 1) % WRITES_KEPT
        return 0

    def find_place(self, int64_t offset):
        # From the newest on: readers at the log's end ask for it, and so does every commit.
        cdef int number = self.write_count
        cdef write_end *end
        while number > 0:
            number -= 1
            end = &self.writes[(self.first_write + number) % WRITES_KEPT]
            if end.offset <= offset:
                if end.offset < offset:
                    return None
                return Place(end.offset, end.segment_base_offset, end.position)
        return None

    def forget_places(self):
        self.write_count = 0
        self.high_place = None

    def advance(self, int64_t offset):
        return self.advance_to(offset)

    cdef bint advance_to(self, int64_t offset) except -1:
        cdef int64_t written = self.last_tail().marked.end_offset
        if offset > written:
            offset = written
        if offset <= self.high_watermark:
            return False
        self.set_high_watermark(offset)
        if self.producers.has_completed:
            self.producers.note_committed(offset)
        return True

    def set_high_watermark(self, int64_t offset):
        self.high_watermark = offset
        self.high_place = self.find_place(offset)

    def commit(self):
        if self.leader is None:
            return False
        self.leader.commit_durable()
        return True


@cython.final
cdef class TopicTraffic:
    pass


cdef class ReplicaBase:
    def __init__(self, TopicTraffic traffic not None):
        self.traffic = traffic
        self.leader_epoch = -1
        self.callbacks = deque()
        self.readers = {}

    @property
    def log(self):
        return self.led

    @log.setter
    def log(self, log):
        if self.end is not None and self.end.leader is self:
            self.end.leader = None
        self.led = log
        self.end = None
        if log is not None:
            self.end = log.end
            self.end.leader = self

    @property
    def log_start(self):
        return -1 if self.end is None else self.end.log_start

    def try_append(
        self, data, Py_ssize_t start, Py_ssize_t end, now not None, int acks, callback not None
    ):
        return self.append_plain(data, start, end, now, acks, callback)

    cdef int64_t append_plain(
        self, object data, Py_ssize_t start, Py_ssize_t end, object now, int acks, object callback
    ) except? -2:
        cdef int64_t base_offset, end_offset
        cdef LogEnd log = self.end
        if log is None or (acks == ACKS_ALL and self.is_under_min_in_sync):
            return DECLINED
        base_offset = log.try_stage(data, start, end, self.leader_epoch, now)
        if base_offset == DECLINED:
            return DECLINED
        end_offset = log.last_tail().state.end_offset
        self.callbacks.append((end_offset, callback))
        self.traffic.produce_requests += 1
        self.traffic.bytes_in += end - start
        self.traffic.messages_in += end_offset - base_offset
        return base_offset

    def commit(self):
        self.commit_durable()

    cdef int commit_durable(self) except -1:
        cdef LogEnd log = self.end
        cdef int64_t high
        if log is None or self.is_under_min_in_sync or not log.advance_to(log.durable()):
            return 0
        high = log.high_watermark
        # One that was sent again may wait behind its first sending, for no longer than that.
        while self.callbacks and self.callbacks[0][0] <= high:
            self.callbacks.popleft()[1].committed(self)
        self.wake()
        return 0

    def wake(self):
        for reader in self.readers:
            reader.wake(self)
