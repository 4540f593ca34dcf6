"""The log kernel: batches at a segment's end, and the search for one by its offset."""

cimport cython
from cpython cimport array
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from moldau._native.records cimport (
    ATTRIBUTE_CONTROL, ATTRIBUTE_LOG_APPEND_TIME, BATCH_HEADER_SIZE, Batch, RecordStats, batch_crc,
    wrapping_add, wrapping_subtract,
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
        BATCH_MAX_TIMESTAMP
    uint32_t load_be32(const uint8_t *p)
    uint64_t load_be64(const uint8_t *p)
    void store_be16(uint8_t *p, uint16_t x)
    void store_be32(uint8_t *p, uint32_t x)
    void store_be64(uint8_t *p, uint64_t x)

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()

cdef enum:
    HEADER_FRONT = 27  # what tells a batch's place and its last offset
    NO_TIMESTAMP = -1

crc32c_initialize()

cdef array.array _INT32 = arrays.array("i")
cdef array.array _INT64 = arrays.array("q")


@cython.final
cdef class Ordinary:
    def __init__(
        self,
        *,
        int64_t batch_bytes_max,
        int64_t total_bytes_max,
        int64_t before_ms_max,
        int64_t after_ms_max,
        bint is_keyed,
    ):
        self.batch_bytes_max = batch_bytes_max
        self.total_bytes_max = total_bytes_max
        self.before_ms_max = before_ms_max
        self.after_ms_max = after_ms_max
        self.is_keyed = is_keyed

    cdef bint admits(self, Batch batch, RecordStats stats, bint is_client, int64_t now_ms) noexcept:
        """Say whether there is nothing to refuse or to change in a batch by itself."""
        if batch.size > self.batch_bytes_max:
            return False
        if batch.attributes & (ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_CONTROL):
            return False
        if stats is not None:
            if stats.max_timestamp != batch.max_timestamp:
                return False
            if stats.max_timestamp != NO_TIMESTAMP and (
                stats.min_timestamp < 0
                or stats.max_timestamp - now_ms > self.after_ms_max
                or now_ms - stats.min_timestamp > self.before_ms_max
            ):
                return False
            if self.is_keyed and stats.keyless_count:
                return False
        return not (
            is_client and (batch.base_offset or (batch.producer_id >= 0 and batch.base_sequence < 0))
        )

    def take(self, checked not None, bint is_client, int64_t now_ms):
        cdef Batch batch
        cdef RecordStats stats
        cdef int64_t total = 0
        cdef list batches = []
        if not checked or (is_client and len(checked) != 1):
            return None
        for batch, stats in checked:
            total += batch.size
            if total > self.total_bytes_max or not self.admits(batch, stats, is_client, now_ms):
                return None
            batches.append(batch)
        return batches


cdef int assign_place(uint8_t *p, Batch batch, int64_t base_offset, int32_t leader_epoch) noexcept:
    """Give an offset and an epoch to the batch at `p`; its checksum does not cover them."""
    batch.base_offset = base_offset
    batch.leader_epoch = leader_epoch
    store_be64(p + BATCH_BASE_OFFSET, <uint64_t>base_offset)
    store_be32(p + BATCH_LEADER_EPOCH, <uint32_t>leader_epoch)
    return 0


def assign(
    data,
    list batches not None,
    int64_t base_offset,
    int32_t leader_epoch,
    int64_t append_time,
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
            assign_place(p, batch, base_offset, leader_epoch)
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


cdef tuple _split(array.array numbers, Py_ssize_t count):
    """Return the last `count` numbers, and those before them."""
    cdef Py_ssize_t size = len(numbers)
    return numbers[size - count :], numbers[: size - count]


@cython.final
cdef class Entries:
    def __cinit__(self):
        self.offsets = array.clone(_INT32, 0, False)
        self.positions = array.clone(_INT32, 0, False)
        self.timestamps = array.clone(_INT64, 0, False)
        self.timestamp_offsets = array.clone(_INT32, 0, False)


@cython.final
cdef class Tail:
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
        int64_t entry_timestamp=-1,
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
        self.state.entry_timestamp = entry_timestamp
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
        if self.entries is None:
            return 0
        return len(self.entries.offsets) - (self.state.offset_entries - self.marked.offset_entries)

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

    cdef int add(self, int64_t last_offset, int64_t max_timestamp, int64_t size) except -1:
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

    def stage(self, list batches not None, Py_ssize_t start, int64_t now_ms):
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
        cdef Entries taken = self.entries, staged
        cdef Py_ssize_t offsets = self.state.offset_entries - self.marked.offset_entries
        cdef Py_ssize_t times = self.state.time_entries - self.marked.time_entries
        self.entries = None
        if taken is not None and offsets:
            # Entries follow their batches: what is not written yet stays.
            staged = self.entries = Entries.__new__(Entries)
            staged.offsets, taken.offsets = _split(taken.offsets, offsets)
            staged.positions, taken.positions = _split(taken.positions, offsets)
            staged.timestamps, taken.timestamps = _split(taken.timestamps, times)
            staged.timestamp_offsets, taken.timestamp_offsets = _split(
                taken.timestamp_offsets, times
            )
        return taken


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
