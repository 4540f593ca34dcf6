"""The compaction kernel: the last offset of every key, and the sieve that drops the others."""

cimport cython
from cpython.buffer cimport (
    PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from moldau._native.encode cimport byte_buffer, buffer_free, buffer_reserve
from moldau._native.records cimport (
    ATTRIBUTE_CODEC, ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL, BATCH_BAD_MAGIC,
    BATCH_HEADER_SIZE, BATCH_PARTIAL, BATCH_WHOLE, Batch, WALK_FINE, batch_crc, batch_header,
    batch_read, invalid_record, record_walk, walk_begin, walk_end, wrapping_add,
)

from moldau.kernel.errors import CorruptBatchError

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()

cdef extern from "siphash.h" nogil:
    ctypedef struct hash128:
        uint64_t low
        uint64_t high
    uint64_t sip_load(const uint8_t *p)
    hash128 c_siphash128 "siphash128"(hash128 key, const uint8_t *data, int64_t size)

cdef extern from "key_map.h" nogil:
    ctypedef struct key_slot:
        pass
    ctypedef struct key_map:
        key_slot *slots
        int64_t slot_count
        int64_t key_count
        int64_t key_count_max
        hash128 secret
    int64_t key_map_find(const key_map *m, hash128 hash)
    int64_t key_map_feed(key_map *m, record_walk *walk, const uint8_t *payload, int64_t size,
                         int64_t base_offset, int64_t first_offset)

cdef extern from "sieve.h" nogil:
    enum:
        SIEVE_NONE
        SIEVE_SOME
        SIEVE_ALL
        SIEVE_BAD_RECORD
        SIEVE_NO_MEMORY
    ctypedef struct sieve:
        const key_map *keys
        int64_t end_offset
        int64_t now_ms
        int64_t delete_retention_ms
        int64_t *needed
        int64_t needed_count
        int64_t base_offset
        int64_t position
        int64_t index_interval_bytes
        int64_t max_timestamp
        int64_t max_timestamp_offset
        int64_t indexed_timestamp
        int64_t last_offset
        byte_buffer log
        byte_buffer offset_index
        byte_buffer time_index
        byte_buffer scratch
        batch_header batch
        int64_t payload_size
        record_walk walk
        int64_t records_read
        int64_t records_kept
        int64_t records_keyless
    uint8_t *sieve_payload(const sieve *s)
    bint sieve_index_time(sieve *s)
    bint sieve_copy(sieve *s, const uint8_t *data, const batch_header *header)
    bint sieve_write(sieve *s)
    bint sieve_empty(sieve *s, const batch_header *header)
    bint sieve_set_horizon(sieve *s, int64_t base_timestamp)
    int sieve_sift(sieve *s, const batch_header *header, const uint8_t *payload, int64_t size)
    int sieve_batch(sieve *s, const uint8_t *data, const batch_header *header)

cdef enum:
    SPECIAL = ATTRIBUTE_CODEC | ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL

cdef enum stop:
    STOP_DATA_ENDS
    STOP_SPECIAL
    STOP_FULL
    STOP_FRAMING
    STOP_CHECKSUM
    STOP_RECORD
    STOP_MEMORY

crc32c_initialize()

KEY_BYTES = sizeof(key_slot)


cdef hash128 _secret(bytes secret) except *:
    cdef hash128 key
    cdef const uint8_t *data = secret
    if len(secret) != 16:
        raise ValueError(f"a secret has 16 bytes, not {len(secret)}")
    key.low = sip_load(data)
    key.high = sip_load(data + 8)
    return key


def siphash128(bytes secret not None, data):
    cdef Py_buffer view
    cdef hash128 hash
    cdef hash128 key = _secret(secret)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    hash = c_siphash128(key, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return hash.low.to_bytes(8, "little") + hash.high.to_bytes(8, "little")


cdef int _stopped(int why, const uint8_t *data, Py_ssize_t position, const batch_header *header,
                  const record_walk *walk) except -1:
    """Raise what ended a run, if it was an error."""
    if why == STOP_MEMORY:
        raise MemoryError
    if why == STOP_RECORD:
        invalid_record(walk)
    if why == STOP_CHECKSUM:
        raise CorruptBatchError(f"batch at {position}: its checksum is not {header.crc:#x}")
    if why == STOP_FRAMING:
        raise CorruptBatchError(
            f"batch at {position}: magic {data[position + 16]}, {header.size} bytes"
        )
    return 0


cdef int _read_batch(const uint8_t *data, Py_ssize_t available, batch_header *header) noexcept nogil:
    """Read and check the header of a batch; what a run stops at is said by the result."""
    cdef int status = batch_read(data, available, header)
    if status == BATCH_PARTIAL:
        return STOP_DATA_ENDS
    if status != BATCH_WHOLE:
        if status == BATCH_BAD_MAGIC:
            header.size = 0
        return STOP_FRAMING
    # Compaction gives what it keeps a new checksum, which must not cover up damage.
    if batch_crc(data, header.size) != header.crc:
        return STOP_CHECKSUM
    if header.attributes & SPECIAL:
        return STOP_SPECIAL
    return -1


cdef inline batch_header _header(Batch batch) noexcept:
    cdef batch_header header
    header.base_offset = batch.base_offset
    header.base_timestamp = batch.base_timestamp
    header.max_timestamp = batch.max_timestamp
    header.producer_id = batch.producer_id
    header.size = batch.size
    header.leader_epoch = batch.leader_epoch
    header.last_offset_delta = batch.last_offset_delta
    header.base_sequence = batch.base_sequence
    header.record_count = batch.record_count
    header.crc = batch.crc
    header.attributes = batch.attributes
    header.producer_epoch = batch.producer_epoch
    return header


@cython.final
cdef class KeyMap:
    cdef key_map map
    cdef readonly int64_t full_at

    def __cinit__(self, int64_t key_count_max, bytes secret not None, *, double load_factor=0.9):
        if key_count_max < 1 or not 0.0 < load_factor <= 0.95:
            raise ValueError("a key map needs room for a key, and a load factor up to 0.95")
        self.map.secret = _secret(secret)
        self.map.key_count_max = key_count_max
        # One more, so that a search always ends at a free slot.
        self.map.slot_count = <int64_t>(key_count_max / load_factor) + 1
        self.map.slots = <key_slot *>calloc(self.map.slot_count, sizeof(key_slot))
        if self.map.slots is NULL:
            raise MemoryError(f"no memory for {key_count_max} keys")
        self.full_at = -1

    def __dealloc__(self):
        free(self.map.slots)

    @property
    def key_count(self):
        return self.map.key_count

    @property
    def key_count_max(self):
        return self.map.key_count_max

    @property
    def memory_bytes(self):
        return self.map.slot_count * sizeof(key_slot)

    def find(self, key):
        cdef Py_buffer view
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        try:
            return key_map_find(
                &self.map, c_siphash128(self.map.secret, <const uint8_t *>view.buf, view.len))
        finally:
            PyBuffer_Release(&view)

    def feed(self, data, Py_ssize_t position, int64_t first_offset):
        cdef Py_buffer view
        cdef batch_header header
        cdef record_walk walk
        cdef const uint8_t *start
        cdef int why
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start = <const uint8_t *>view.buf
            with nogil:
                while True:
                    why = _read_batch(start + position, view.len - position, &header)
                    if why < 0:
                        why = self._feed(&header, start + position + BATCH_HEADER_SIZE,
                                         header.size - BATCH_HEADER_SIZE, &walk, first_offset)
                    if why >= 0:
                        break
                    position += header.size
            _stopped(why, start, position, &header, &walk)
            return position, header.size if why == STOP_SPECIAL else 0
        finally:
            PyBuffer_Release(&view)

    def feed_records(self, Batch batch not None, payload, int64_t first_offset):
        cdef Py_buffer view
        cdef batch_header header = _header(batch)
        cdef record_walk walk
        cdef int why
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                why = self._feed(&header, <const uint8_t *>view.buf, view.len, &walk, first_offset)
            _stopped(why, NULL, batch.position, &header, &walk)
        finally:
            PyBuffer_Release(&view)

    cdef int _feed(self, const batch_header *header, const uint8_t *payload, int64_t size,
                   record_walk *walk, int64_t first_offset) noexcept nogil:
        """Take one batch; -1 if all went well, otherwise why the run stops."""
        if walk_begin(walk, header.record_count, header.last_offset_delta, header.base_timestamp,
                      False) != WALK_FINE:
            return STOP_RECORD
        self.full_at = key_map_feed(
            &self.map, walk, payload, size, header.base_offset, first_offset)
        if self.full_at >= 0:
            return STOP_FULL
        return -1 if walk_end(walk) == WALK_FINE else STOP_RECORD


@cython.final
cdef class Sieve:
    cdef sieve state
    cdef KeyMap keys  # keeps the map alive

    def __cinit__(
        self,
        KeyMap keys not None,
        *,
        int64_t base_offset,
        int64_t end_offset,
        int64_t now_ms,
        int64_t delete_retention_ms,
        needed,
        int64_t index_interval_bytes,
    ):
        cdef Py_ssize_t i
        cdef sieve *s = &self.state
        self.keys = keys
        s.keys = &keys.map
        s.base_offset = base_offset
        s.end_offset = end_offset
        s.now_ms = now_ms
        s.delete_retention_ms = delete_retention_ms
        s.index_interval_bytes = index_interval_bytes
        s.max_timestamp = s.indexed_timestamp = s.last_offset = -1
        s.max_timestamp_offset = base_offset
        s.needed_count = len(needed)
        s.needed = <int64_t *>malloc((s.needed_count + 1) * sizeof(int64_t))
        if s.needed is NULL:
            raise MemoryError
        for i in range(s.needed_count):
            s.needed[i] = needed[i]

    def __dealloc__(self):
        free(self.state.needed)
        buffer_free(&self.state.log)
        buffer_free(&self.state.offset_index)
        buffer_free(&self.state.time_index)
        buffer_free(&self.state.scratch)

    @property
    def pending_bytes(self):
        return self.state.log.size + self.state.offset_index.size + self.state.time_index.size

    @property
    def log_bytes(self):
        return self.state.position + <int64_t>self.state.log.size

    @property
    def last_offset(self):
        return self.state.last_offset

    @property
    def max_timestamp(self):
        return self.state.max_timestamp

    @property
    def records_read(self):
        return self.state.records_read

    @property
    def records_kept(self):
        return self.state.records_kept

    @property
    def records_keyless(self):
        return self.state.records_keyless

    def run(self, data, Py_ssize_t position):
        cdef Py_buffer view
        cdef batch_header header
        cdef const uint8_t *start
        cdef int why
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start = <const uint8_t *>view.buf
            with nogil:
                while True:
                    why = _read_batch(start + position, view.len - position, &header)
                    if why < 0:
                        why = self._batch(start + position, &header)
                    if why >= 0:
                        break
                    position += header.size
            _stopped(why, start, position, &header, &self.state.walk)
            return position, header.size if why == STOP_SPECIAL else 0
        finally:
            PyBuffer_Release(&view)

    cdef int _batch(self, const uint8_t *data, const batch_header *header) noexcept nogil:
        """Sift one plain batch; -1 if all went well, otherwise why the run stops."""
        cdef int result = sieve_batch(&self.state, data, header)
        if result == SIEVE_BAD_RECORD:
            return STOP_RECORD
        return STOP_MEMORY if result == SIEVE_NO_MEMORY else -1

    def sift(self, data, Batch batch not None, payload, *, bint keep_empty, compress=None):
        cdef Py_buffer view
        cdef batch_header header = _header(batch)
        cdef int result
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        with nogil:
            result = sieve_sift(&self.state, &header, <const uint8_t *>view.buf, view.len)
        PyBuffer_Release(&view)
        if result == SIEVE_BAD_RECORD:
            invalid_record(&self.state.walk)
        elif result == SIEVE_NO_MEMORY:
            raise MemoryError
        elif result == SIEVE_ALL:
            self.copy(data, batch)
        elif result == SIEVE_SOME:
            if compress is not None:
                self._compress(compress)
            self._write()
        elif keep_empty:
            self.keep_empty(batch)

    cdef int _compress(self, compress) except -1:
        """Put the compressed records of the batch at hand in the place of the plain ones."""
        cdef Py_buffer view
        cdef sieve *s = &self.state
        plain = PyMemoryView_FromMemory(<char *>sieve_payload(s), s.payload_size, PyBUF_READ)
        try:
            packed = compress(plain)
        finally:
            plain.release()
        PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE)
        try:
            if view.len > INT32_MAX or not buffer_reserve(&s.log, BATCH_HEADER_SIZE + view.len):
                raise MemoryError
            memcpy(sieve_payload(s), view.buf, view.len)
            s.payload_size = view.len
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef int _write(self) except -1:
        cdef bint written
        with nogil:
            written = sieve_write(&self.state)
        if not written:
            raise MemoryError
        return 0

    def copy(self, data, Batch batch not None, *, bint set_horizon=False):
        cdef Py_buffer view
        cdef batch_header header = _header(batch)
        cdef sieve *s = &self.state
        cdef bint written
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if batch.position + batch.size > view.len:
                raise ValueError("the batch is not in this buffer")
            if not set_horizon:
                written = sieve_copy(s, <const uint8_t *>view.buf + batch.position, &header)
            elif not buffer_reserve(&s.log, header.size):
                written = False
            else:
                s.batch = header
                s.payload_size = header.size - BATCH_HEADER_SIZE
                memcpy(sieve_payload(s),
                       <const uint8_t *>view.buf + batch.position + BATCH_HEADER_SIZE,
                       s.payload_size)
                written = sieve_set_horizon(
                    s, wrapping_add(s.now_ms, s.delete_retention_ms)) and sieve_write(s)
        finally:
            PyBuffer_Release(&view)
        if not written:
            raise MemoryError

    def keep_empty(self, Batch batch not None):
        cdef batch_header header = _header(batch)
        if not sieve_empty(&self.state, &header):
            raise MemoryError

    def finish(self):
        if not sieve_index_time(&self.state):
            raise MemoryError

    def drain(self, sink):
        self.state.position += <int64_t>self._drain(0, &self.state.log, sink)
        self._drain(1, &self.state.offset_index, sink)
        self._drain(2, &self.state.time_index, sink)

    cdef Py_ssize_t _drain(self, int stream, byte_buffer *buffer, sink) except -1:
        cdef Py_ssize_t size = buffer.size
        if size:
            view = PyMemoryView_FromMemory(<char *>buffer.data, size, PyBUF_READ)
            try:
                sink(stream, view)
            finally:
                view.release()
            buffer.size = 0
        return size
