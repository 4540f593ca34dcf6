"""The log kernel: batches at a segment's end, found by offset, scanned after a crash."""

cimport cython
from cpython cimport array
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from moldau._native.records cimport (
    ATTRIBUTE_CONTROL, ATTRIBUTE_LOG_APPEND_TIME, BATCH_HEADER_SIZE, BATCH_BAD_MAGIC,
    BATCH_PARTIAL, BATCH_WHOLE, Batch, batch_crc, batch_header, batch_read, wrapping_add, wrapping_subtract,
)

import array as arrays

from moldau.kernel.errors import CorruptBatchError

cdef extern from "batch.h" nogil:
    enum:
        BATCH_BASE_OFFSET
        BATCH_LENGTH
        BATCH_LEADER_EPOCH
        BATCH_MAGIC
        BATCH_CRC
        BATCH_ATTRIBUTES
        BATCH_LAST_OFFSET_DELTA
        BATCH_BASE_TIMESTAMP
        BATCH_MAX_TIMESTAMP
    uint32_t load_be32(const uint8_t *p)
    uint64_t load_be64(const uint8_t *p)
    void store_be16(uint8_t *p, uint16_t x)
    void store_be32(uint8_t *p, uint32_t x)
    void store_be64(uint8_t *p, uint64_t x)

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()
    uint32_t crc32c_update(uint32_t crc, const uint8_t *p, size_t size)

cdef enum:
    HEADER_FRONT = 27  # what tells a batch's place and its last offset

crc32c_initialize()

cdef array.array _INT32 = arrays.array("i")
cdef array.array _INT64 = arrays.array("q")


def take_ordinary(
    list checked not None,
    *,
    bint is_client,
    bint is_keyed,
    int64_t bytes_max,
    int64_t now_ms,
    int64_t before_ms_max,
    int64_t after_ms_max,
):
    cdef Batch batch
    cdef int64_t max_timestamp
    cdef list batches = []
    if is_client and len(checked) != 1:
        return None
    for batch, stats in checked:
        if batch.size > bytes_max or batch.attributes & (ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_CONTROL):
            return None
        max_timestamp = stats.max_timestamp
        if max_timestamp != batch.max_timestamp:
            return None
        if max_timestamp >= 0 and (
            max_timestamp - now_ms > after_ms_max or now_ms - <int64_t>stats.min_timestamp > before_ms_max
        ):
            return None
        if is_keyed and stats.keyless_count:
            return None
        if is_client and (batch.base_offset or (batch.producer_id >= 0 and batch.base_sequence < 0)):
            return None
        batches.append(batch)
    return batches


def assign(
    data,
    list batches not None,
    *,
    int64_t base_offset,
    int32_t leader_epoch,
    int64_t append_time=-1,
):
    cdef Py_buffer view
    cdef Batch batch
    cdef uint8_t *p
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        for batch in batches:
            if batch.position < 0 or batch.position + batch.size > view.len:
                raise ValueError("the batch is not in this buffer")
            p = <uint8_t *>view.buf + batch.position
            batch.base_offset = base_offset
            batch.leader_epoch = leader_epoch
            store_be64(p + BATCH_BASE_OFFSET, <uint64_t>base_offset)
            store_be32(p + BATCH_LEADER_EPOCH, <uint32_t>leader_epoch)
            if append_time >= 0:
                batch.attributes |= ATTRIBUTE_LOG_APPEND_TIME
                batch.max_timestamp = append_time
                store_be16(p + BATCH_ATTRIBUTES, <uint16_t>batch.attributes)
                store_be64(p + BATCH_MAX_TIMESTAMP, <uint64_t>append_time)
                batch.crc = batch_crc(p, batch.size)
                store_be32(p + BATCH_CRC, batch.crc)
            base_offset += batch.last_offset_delta + 1
        return base_offset
    finally:
        PyBuffer_Release(&view)


cdef struct tail_state:
    int64_t end_offset
    int64_t position
    int64_t bytes_since_entry
    int64_t first_timestamp
    int64_t max_timestamp
    int64_t max_timestamp_offset
    int64_t entry_timestamp  # of the time index's last entry
    int32_t offset_entries
    int32_t time_entries


cdef inline Py_ssize_t _push32(array.array numbers, int32_t number) except -1:
    cdef Py_ssize_t size = len(numbers)
    array.resize_smart(numbers, size + 1)
    numbers.data.as_ints[size] = number
    return 0


cdef inline Py_ssize_t _push64(array.array numbers, int64_t number) except -1:
    cdef Py_ssize_t size = len(numbers)
    array.resize_smart(numbers, size + 1)
    numbers.data.as_longlongs[size] = number
    return 0


@cython.final
cdef class Entries:
    cdef readonly array.array offsets, positions, timestamps, timestamp_offsets

    def __cinit__(self):
        self.offsets = array.clone(_INT32, 0, False)
        self.positions = array.clone(_INT32, 0, False)
        self.timestamps = array.clone(_INT64, 0, False)
        self.timestamp_offsets = array.clone(_INT32, 0, False)


@cython.final
cdef class Tail:
    cdef tail_state state
    cdef tail_state marked
    cdef readonly int64_t base_offset
    cdef readonly int64_t created_ms
    cdef int64_t bytes_max
    cdef int64_t age_ms_max
    cdef int64_t interval_bytes
    cdef int64_t offset_entries_max
    cdef int64_t time_entries_max
    cdef Entries entries

    def __init__(
        self,
        int64_t base_offset,
        *,
        int64_t created_ms,
        int64_t end_offset=-1,
        int64_t position=0,
        int64_t first_timestamp=-1,
        int64_t max_timestamp=-1,
        int64_t max_timestamp_offset=-1,
        int32_t offset_entries=0,
        int32_t time_entries=0,
    ):
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.state.end_offset = base_offset if end_offset < 0 else end_offset
        self.state.position = position
        self.state.bytes_since_entry = 0
        self.state.first_timestamp = first_timestamp
        self.state.max_timestamp = max_timestamp
        self.state.max_timestamp_offset = max_timestamp_offset
        self.state.entry_timestamp = max_timestamp if time_entries else -1
        self.state.offset_entries = offset_entries
        self.state.time_entries = time_entries
        self.marked = self.state
        self.limit(bytes_max=INT32_MAX, age_ms_max=-1, interval_bytes=4096, index_bytes_max=INT32_MAX)

    def limit(
        self, *, int64_t bytes_max, int64_t age_ms_max, int64_t interval_bytes, int64_t index_bytes_max
    ):
        self.bytes_max = bytes_max
        self.age_ms_max = age_ms_max
        self.interval_bytes = interval_bytes
        self.offset_entries_max = index_bytes_max // 8
        # One is kept free for the entry that is made when the segment is closed.
        self.time_entries_max = index_bytes_max // 12 - 1

    @property
    def end_offset(self):
        return self.state.end_offset

    @property
    def position(self):
        return self.state.position

    @property
    def first_timestamp(self):
        return self.state.first_timestamp

    @property
    def max_timestamp(self):
        return self.state.max_timestamp

    @property
    def max_timestamp_offset(self):
        return self.state.max_timestamp_offset

    @property
    def marked_end_offset(self):
        return self.marked.end_offset

    @property
    def marked_position(self):
        return self.marked.position

    @property
    def entry_count(self):
        return 0 if self.entries is None else len(self.entries.offsets)

    cdef bint must_roll(self, Batch batch, int64_t now_ms) noexcept:
        cdef int64_t waited_ms
        cdef int64_t last_offset = wrapping_add(batch.base_offset, batch.last_offset_delta)
        if wrapping_subtract(last_offset, self.base_offset) > INT32_MAX:
            return True
        if self.state.position == 0:
            return False
        if self.state.position + batch.size > self.bytes_max:
            return True
        if self.state.offset_entries >= self.offset_entries_max:
            return True
        if self.state.time_entries >= self.time_entries_max:
            return True
        if self.age_ms_max < 0:
            return False
        # By the records' own time where they have one, so that a replica rolls where its leader does.
        if self.state.first_timestamp >= 0:
            waited_ms = batch.max_timestamp - self.state.first_timestamp
        else:
            waited_ms = now_ms - self.created_ms
        return waited_ms > self.age_ms_max

    cdef int add(
        self, int64_t last_offset, int64_t max_timestamp, int64_t size
    ) except -1:
        cdef tail_state *state = &self.state
        if state.position == 0:
            state.first_timestamp = max_timestamp
        if max_timestamp > state.max_timestamp:
            state.max_timestamp = max_timestamp
            state.max_timestamp_offset = last_offset
        if state.bytes_since_entry > self.interval_bytes:
            if self.entries is None:
                self.entries = Entries.__new__(Entries)
            _push32(self.entries.offsets, <int32_t>(last_offset - self.base_offset))
            _push32(self.entries.positions, <int32_t>state.position)
            state.offset_entries += 1
            if state.max_timestamp > state.entry_timestamp:
                _push64(self.entries.timestamps, state.max_timestamp)
                _push32(
                    self.entries.timestamp_offsets,
                    <int32_t>(state.max_timestamp_offset - self.base_offset),
                )
                state.entry_timestamp = state.max_timestamp
                state.time_entries += 1
            state.bytes_since_entry = 0
        state.bytes_since_entry += size
        state.position += size
        state.end_offset = last_offset + 1
        return 0

    def stage(self, list batches not None, Py_ssize_t start, *, int64_t now_ms):
        cdef Batch batch
        cdef Py_ssize_t number
        for number in range(start, len(batches)):
            batch = batches[number]
            if self.must_roll(batch, now_ms):
                return number
            self.add(batch.base_offset + batch.last_offset_delta, batch.max_timestamp, batch.size)
        return len(batches)

    def mark(self):
        self.marked = self.state

    def rewind(self):
        cdef Py_ssize_t count
        if self.entries is not None:
            count = self.state.offset_entries - self.marked.offset_entries
            self._drop(self.entries.offsets, count)
            self._drop(self.entries.positions, count)
            count = self.state.time_entries - self.marked.time_entries
            self._drop(self.entries.timestamps, count)
            self._drop(self.entries.timestamp_offsets, count)
        self.state = self.marked

    cdef int _drop(self, array.array numbers, Py_ssize_t count) except -1:
        array.resize(numbers, len(numbers) - count)
        return 0

    def take_entries(self):
        cdef Entries entries = self.entries
        assert self.state.position == self.marked.position, "entries follow their batches"
        self.entries = None
        return entries


def find_batch(window, int64_t offset):
    cdef Py_buffer view
    cdef const uint8_t *p
    cdef Py_ssize_t position = 0
    cdef int64_t last_offset = -1, size
    PyObject_GetBuffer(window, &view, PyBUF_SIMPLE)
    try:
        while position + HEADER_FRONT <= view.len:
            p = <const uint8_t *>view.buf + position
            size = <int64_t><int32_t>load_be32(p + BATCH_LENGTH) + BATCH_LEADER_EPOCH
            if p[BATCH_MAGIC] != 2 or size < BATCH_HEADER_SIZE:
                raise CorruptBatchError(f"no batch at {position}")
            last_offset = wrapping_add(
                <int64_t>load_be64(p + BATCH_BASE_OFFSET),
                <int32_t>load_be32(p + BATCH_LAST_OFFSET_DELTA),
            )
            if last_offset >= offset:
                return position, size, last_offset
            position += size
        return position, 0, last_offset
    finally:
        PyBuffer_Release(&view)


cdef struct found_batch:
    int64_t position
    batch_header header


@cython.final
cdef class SegmentScan:
    cdef readonly Tail tail
    cdef readonly object failure
    cdef readonly int64_t next_position
    cdef readonly list epochs
    cdef int64_t size
    cdef int64_t offset_min
    cdef int64_t check_from
    cdef int64_t batch_position
    cdef int64_t body_left
    cdef uint32_t crc
    cdef int checking
    cdef Py_ssize_t header_have
    cdef uint8_t header_bytes[BATCH_HEADER_SIZE]
    cdef batch_header header
    cdef found_batch *found
    cdef Py_ssize_t found_count, found_room
    cdef int32_t latest_epoch
    cdef int32_t scanned_epoch  # of what is not accounted for yet, too

    def __init__(
        self, Tail tail not None, *, int64_t size, int64_t check_from, int32_t latest_epoch=-1
    ):
        self.tail = tail
        self.failure = None
        self.size = size
        self.check_from = check_from
        self.next_position = self.batch_position = tail.state.position
        self.offset_min = tail.state.end_offset
        self.epochs = []
        self.latest_epoch = self.scanned_epoch = latest_epoch

    def __dealloc__(self):
        free(self.found)

    @property
    def is_checking(self):
        return self.offset_min >= self.check_from or self.body_left > 0

    def feed(self, chunk):
        cdef Py_buffer view
        cdef int reason
        if self.failure is not None:
            raise ValueError("the scan has failed already")
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            self.found_count = 0
            with nogil:
                reason = self._scan(<const uint8_t *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        if reason == SCAN_NO_MEMORY:
            raise MemoryError
        found = self._account()
        if reason != SCAN_FINE:
            self.failure = SCAN_REASONS[reason]
        return found

    def finish(self):
        if self.failure is None and self.batch_position != self.size:
            self.failure = SCAN_REASONS[SCAN_CUT_OFF]

    cdef int _scan(self, const uint8_t *data, int64_t size) noexcept nogil:
        cdef int64_t at = 0, count
        cdef int status
        while at < size:
            if self.header_have < BATCH_HEADER_SIZE:
                count = min(<int64_t>(BATCH_HEADER_SIZE - self.header_have), size - at)
                memcpy(self.header_bytes + self.header_have, data + at, count)
                self.header_have += count
                at += count
                self.next_position += count
                if self.header_have < BATCH_HEADER_SIZE:
                    break
                status = self._begin()
                if status != SCAN_FINE:
                    return status
            if not self.checking:
                # The body is of no interest; the caller need not even read it.
                at += self.body_left
                self.next_position += self.body_left
                self.body_left = 0
            else:
                count = min(self.body_left, size - at)
                self.crc = crc32c_update(self.crc, data + at, count)
                at += count
                self.next_position += count
                self.body_left -= count
            if self.body_left == 0:
                status = self._end()
                if status != SCAN_FINE:
                    return status
        return SCAN_FINE

    cdef int _begin(self) noexcept nogil:
        """A header is there: judge it."""
        cdef batch_header *header = &self.header
        cdef int64_t last_offset
        cdef int status = batch_read(self.header_bytes, self.size - self.batch_position, header)
        if status == BATCH_BAD_MAGIC:
            return SCAN_BAD_MAGIC
        if status == BATCH_PARTIAL:
            return SCAN_CUT_OFF
        if status != BATCH_WHOLE:
            return SCAN_BAD_LENGTH
        last_offset = wrapping_add(header.base_offset, header.last_offset_delta)
        if not self.offset_min <= header.base_offset <= last_offset:
            return SCAN_BAD_OFFSET
        if last_offset - self.tail.base_offset > INT32_MAX:
            return SCAN_BAD_OFFSET
        self.checking = last_offset >= self.check_from
        # A cut that was not synced may bring back what it removed, behind what came in its place.
        if self.checking and 0 <= header.leader_epoch < self.scanned_epoch:
            return SCAN_BAD_EPOCH
        self.scanned_epoch = header.leader_epoch
        self.crc = 0
        if self.checking:
            self.crc = crc32c_update(
                0, self.header_bytes + BATCH_ATTRIBUTES, BATCH_HEADER_SIZE - BATCH_ATTRIBUTES
            )
        self.body_left = header.size - BATCH_HEADER_SIZE
        return SCAN_FINE

    cdef int _end(self) noexcept nogil:
        """A batch is whole: note it."""
        cdef Py_ssize_t room
        cdef found_batch *grown
        if self.checking and self.crc != self.header.crc:
            return SCAN_BAD_CRC
        if self.found_count == self.found_room:
            room = 2 * self.found_room + 64
            grown = <found_batch *>realloc(self.found, room * sizeof(found_batch))
            if grown is NULL:
                return SCAN_NO_MEMORY
            self.found = grown
            self.found_room = room
        self.found[self.found_count].position = self.batch_position
        self.found[self.found_count].header = self.header
        self.found_count += 1
        self.batch_position += self.header.size
        self.offset_min = self.header.base_offset + self.header.last_offset_delta + 1
        self.header_have = 0
        return SCAN_FINE

    cdef list _account(self):
        """Take what was found into the tail; return the batches of producers."""
        cdef list batches = []
        cdef batch_header *header
        cdef Py_ssize_t number
        for number in range(self.found_count):
            header = &self.found[number].header
            self.tail.add(
                header.base_offset + header.last_offset_delta, header.max_timestamp, header.size
            )
            if header.leader_epoch != self.latest_epoch and header.leader_epoch >= 0:
                self.latest_epoch = header.leader_epoch
                self.epochs.append((header.leader_epoch, header.base_offset))
            if header.producer_id >= 0:
                batches.append(_batch(header, self.found[number].position))
        self.tail.mark()
        return batches


cdef enum:
    SCAN_FINE
    SCAN_BAD_MAGIC
    SCAN_BAD_LENGTH
    SCAN_BAD_OFFSET
    SCAN_BAD_EPOCH
    SCAN_BAD_CRC
    SCAN_CUT_OFF
    SCAN_NO_MEMORY

SCAN_REASONS = {
    SCAN_BAD_MAGIC: "the magic is not 2",
    SCAN_BAD_LENGTH: "the length is too small for a batch",
    SCAN_BAD_OFFSET: "the offsets do not follow",
    SCAN_BAD_EPOCH: "the leader epoch is older than the one before",
    SCAN_BAD_CRC: "the checksum is wrong",
    SCAN_CUT_OFF: "the file ends inside",
}


cdef Batch _batch(const batch_header *header, Py_ssize_t position):
    cdef Batch batch = Batch.__new__(Batch)
    batch.position = position
    batch.size = header.size
    batch.base_offset = header.base_offset
    batch.leader_epoch = header.leader_epoch
    batch.crc = header.crc
    batch.attributes = header.attributes
    batch.last_offset_delta = header.last_offset_delta
    batch.base_timestamp = header.base_timestamp
    batch.max_timestamp = header.max_timestamp
    batch.producer_id = header.producer_id
    batch.producer_epoch = header.producer_epoch
    batch.base_sequence = header.base_sequence
    batch.record_count = header.record_count
    return batch


def read_header(front, Py_ssize_t position=0):
    cdef Py_buffer view
    cdef batch_header header
    PyObject_GetBuffer(front, &view, PyBUF_SIMPLE)
    try:
        # Only the header is here: so the body is not asked for.
        if view.len < BATCH_HEADER_SIZE:
            raise CorruptBatchError(f"batch at {position}: {view.len} bytes are no header")
        if batch_read(<const uint8_t *>view.buf, INT32_MAX + <int64_t>64, &header) != BATCH_WHOLE:
            raise CorruptBatchError(f"batch at {position}: not a header of format 2")
        return _batch(&header, position)
    finally:
        PyBuffer_Release(&view)


def find_whole_batch(data, int64_t offset_min, Py_ssize_t start=0):
    cdef Py_buffer view
    cdef Py_ssize_t position, found = -1
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            for position in range(start, view.len - BATCH_HEADER_SIZE + 1):
                if _is_whole(<const uint8_t *>view.buf + position, view.len - position, offset_min):
                    found = position
                    break
        return found
    finally:
        PyBuffer_Release(&view)


cdef bint _is_whole(const uint8_t *p, int64_t available, int64_t offset_min) noexcept nogil:
    cdef batch_header header
    if p[BATCH_MAGIC] != 2:
        return False
    header.base_offset = <int64_t>load_be64(p)
    if not offset_min <= header.base_offset <= offset_min + INT32_MAX:
        return False
    return batch_read(p, available, &header) == BATCH_WHOLE and batch_crc(p, header.size) == header.crc
