"""The scan of a segment after a crash: which batches are whole, and what follows from them."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from moldau._native.log cimport Tail
from moldau._native.records cimport (
    BATCH_BAD_MAGIC, BATCH_HEADER_SIZE, BATCH_PARTIAL, BATCH_WHOLE, batch_crc, batch_header,
    batch_read, make_batch, wrapping_add,
)

from moldau.kernel.errors import CorruptBatchError

cdef extern from "batch.h" nogil:
    enum:
        BATCH_ATTRIBUTES
        BATCH_MAGIC
    uint64_t load_be64(const uint8_t *p)

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()
    uint32_t crc32c_update(uint32_t crc, const uint8_t *p, size_t size)

crc32c_initialize()


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
                batches.append(make_batch(header, self.found[number].position))
        self.tail.mark()
        return batches


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
        return make_batch(&header, position)
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
