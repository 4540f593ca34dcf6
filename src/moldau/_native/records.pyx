"""The record-batch kernel: headers, checksums, record walks, Python records, building."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX
from libc.string cimport memcpy, memset

from moldau._native.encode cimport (
    byte_buffer, buffer_free, buffer_reserve, record_body_size, record_fields, record_put, slice_,
    slice_put, slice_size, varint_size,
)

from moldau.kernel.errors import (
    CorruptBatchError, InvalidRecordError, OffsetDeltaError, ProtocolError,
)

cdef extern from "batch.h" nogil:
    enum:
        BATCH_BASE_OFFSET
        BATCH_LENGTH
        BATCH_LEADER_EPOCH
        BATCH_CRC
        BATCH_ATTRIBUTES
        BATCH_MAX_TIMESTAMP
    void store_be16(uint8_t *p, uint16_t x)
    void store_be32(uint8_t *p, uint32_t x)
    void store_be64(uint8_t *p, uint64_t x)

cdef extern from "varint.h" nogil:
    enum:
        VARINT32_BYTES_MAX
    uint8_t *varint_put(uint8_t *p, int64_t x)
    bint varint32_get(const uint8_t *data, int64_t *position, int64_t end, int64_t *number)

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()
    const char *crc32c_implementation()
    uint32_t crc32c_update(uint32_t crc, const uint8_t *p, size_t size)
    uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *p, size_t size)

# Below this many bytes another thread would wait longer for the lock than for us.
cdef enum:
    NOGIL_BYTES_MIN = 1 << 16

crc32c_initialize()

NO_TIMESTAMP = -1
CRC32C_IMPLEMENTATION = crc32c_implementation().decode()


cdef uint32_t _crc(uint32_t crc, const uint8_t *data, Py_ssize_t size) noexcept:
    if size < NOGIL_BYTES_MIN:
        return crc32c_update(crc, data, size)
    with nogil:
        return crc32c_update(crc, data, size)


def crc32c(data, uint32_t crc=0):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return _crc(crc, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def crc32c_tables(data, uint32_t crc=0):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return crc32c_by_tables(crc, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


@cython.final
@cython.freelist(16)
cdef class Batch:
    @property
    def codec(self):
        return self.attributes & ATTRIBUTE_CODEC

    @property
    def is_log_append_time(self):
        return self.attributes & ATTRIBUTE_LOG_APPEND_TIME != 0

    @property
    def is_transactional(self):
        return self.attributes & ATTRIBUTE_TRANSACTIONAL != 0

    @property
    def is_control(self):
        return self.attributes & ATTRIBUTE_CONTROL != 0

    @property
    def has_delete_horizon(self):
        return self.attributes & ATTRIBUTE_DELETE_HORIZON != 0

    @property
    def last_offset(self):
        return wrapping_add(self.base_offset, self.last_offset_delta)

    def __repr__(self):
        return (
            f"Batch(position={self.position}, size={self.size}, base_offset={self.base_offset}, "
            f"last_offset={self.last_offset}, record_count={self.record_count}, "
            f"attributes={self.attributes:#x}, leader_epoch={self.leader_epoch}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, "
            f"base_sequence={self.base_sequence})"
        )


cdef Batch make_batch(const batch_header *header, Py_ssize_t position):
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


cdef int _corrupt(int status, const uint8_t *data, Py_ssize_t position, int64_t size) except -1:
    if status == BATCH_BAD_MAGIC:
        raise CorruptBatchError(f"batch at {position}: magic {data[position + 16]}, not 2")
    raise CorruptBatchError(f"batch at {position}: {size} bytes, too short for a batch")


cdef int _check_crc(const uint8_t *data, Py_ssize_t position, const batch_header *header) except -1:
    cdef uint32_t found
    if header.size < NOGIL_BYTES_MIN:
        found = batch_crc(data + position, header.size)
    else:
        with nogil:
            found = batch_crc(data + position, header.size)
    if found != header.crc:
        raise CorruptBatchError(f"batch at {position}: checksum {header.crc:#x}, not {found:#x}")
    return 0


cdef Py_ssize_t _end(Py_ssize_t start, object end, Py_ssize_t size) except -1:
    cdef Py_ssize_t stop = size if end is None else end
    if not 0 <= start <= stop <= size:
        raise ValueError(f"{start} to {stop} is not a range of {size} bytes")
    return stop


def read_batches(data, Py_ssize_t start=0, end=None, *, bint check_crc=True):
    cdef Py_buffer view
    cdef batch_header header
    cdef Py_ssize_t position = start, stop
    cdef const uint8_t *bytes_
    cdef int status
    cdef list batches = []
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        bytes_ = <const uint8_t *>view.buf
        stop = _end(start, end, view.len)
        while position < stop:
            status = batch_read(bytes_ + position, stop - position, &header)
            if status == BATCH_PARTIAL:
                break
            if status != BATCH_WHOLE:
                _corrupt(status, bytes_, position, header.size)
            if check_crc:
                _check_crc(bytes_, position, &header)
            batches.append(make_batch(&header, position))
            position += header.size
        return batches
    finally:
        PyBuffer_Release(&view)


@cython.final
@cython.freelist(16)
cdef class RecordStats:
    def __repr__(self):
        return (
            f"RecordStats(record_count={self.record_count}, max_timestamp={self.max_timestamp}, "
            f"max_timestamp_delta={self.max_timestamp_delta}, "
            f"min_timestamp={self.min_timestamp}, keyless_count={self.keyless_count})"
        )


cdef RecordStats _stats(const record_walk *walk):
    cdef RecordStats stats = RecordStats.__new__(RecordStats)
    stats.record_count = walk.records_done
    stats.max_timestamp = walk.max_timestamp
    stats.max_timestamp_delta = walk.max_timestamp_delta
    # The walk begins with the largest number, which is nobody's unless it is the largest as well.
    stats.min_timestamp = walk.min_timestamp if walk.min_timestamp <= walk.max_timestamp else -1
    stats.keyless_count = walk.keyless_count
    return stats


cdef int invalid_record(const record_walk *walk) except -1:
    """Raise what a walk found."""
    cdef str message = walk_message(walk.error).decode()
    if walk.error in (WALK_COUNT, WALK_OFFSET_RANGE, WALK_LEFT_OVER):
        raise InvalidRecordError(message)
    if walk.error == WALK_OFFSET_DELTA:
        raise OffsetDeltaError(f"record {walk.records_done}: {message}")
    raise InvalidRecordError(f"record {walk.records_done}: {message}")


cdef int _walk_piece(record_walk *walk, const uint8_t *data, Py_ssize_t size) noexcept:
    if size < NOGIL_BYTES_MIN:
        return walk_piece(walk, data, size)
    with nogil:
        return walk_piece(walk, data, size)


@cython.final
cdef class RecordWalk:
    cdef record_walk walk

    def __init__(self, Batch batch not None, *, bint consecutive=True):
        if walk_begin(&self.walk, batch.record_count, batch.last_offset_delta,
                      batch.base_timestamp, consecutive) != WALK_FINE:
            invalid_record(&self.walk)

    def feed(self, piece):
        cdef Py_buffer view
        PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE)
        try:
            if _walk_piece(&self.walk, <const uint8_t *>view.buf, view.len) != WALK_FINE:
                invalid_record(&self.walk)
        finally:
            PyBuffer_Release(&view)

    def finish(self):
        if walk_end(&self.walk) != WALK_FINE:
            invalid_record(&self.walk)
        return _stats(&self.walk)


cdef list check_range(const uint8_t *data, Py_ssize_t start, Py_ssize_t end, bint consecutive):
    """`check_batches` over data[start:end], whose bounds the caller has checked."""
    cdef batch_header header
    cdef record_walk walk
    cdef RecordStats stats
    cdef int status
    cdef list checked = []
    while start < end:
        status = batch_read(data + start, end - start, &header)
        if status == BATCH_PARTIAL:
            raise CorruptBatchError(f"batch at {start}: cut off after {end - start} bytes")
        if status != BATCH_WHOLE:
            _corrupt(status, data, start, header.size)
        _check_crc(data, start, &header)
        stats = None
        if walk_begin(&walk, header.record_count, header.last_offset_delta,
                      header.base_timestamp, consecutive) != WALK_FINE:
            invalid_record(&walk)
        if header.attributes & ATTRIBUTE_CODEC == 0:
            _walk_piece(&walk, data + start + BATCH_HEADER_SIZE, header.size - BATCH_HEADER_SIZE)
            if walk_end(&walk) != WALK_FINE:
                invalid_record(&walk)
            stats = _stats(&walk)
        checked.append((make_batch(&header, start), stats))
        start += header.size
    return checked


def check_batches(data, Py_ssize_t start=0, end=None, *, bint consecutive=True):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return check_range(<const uint8_t *>view.buf, start, _end(start, end, view.len), consecutive)
    finally:
        PyBuffer_Release(&view)


cdef int64_t _skip_varint(const uint8_t *data, int64_t position, int64_t end) noexcept:
    """Return the place behind a varint, or the end."""
    while position < end:
        position += 1
        if data[position - 1] < 0x80:
            break
    return position


cdef bint _number(byte_buffer *out, const uint8_t *data, int64_t size) except -1:
    """Copy records with offset deltas 0, 1, 2, ...; say whether they were records."""
    cdef int64_t position = 0, number = 0, length, end, delta, rest
    cdef uint8_t *p
    while position < size:
        if not varint32_get(data, &position, size, &length):
            return False
        end = position + length
        if length < 0 or end > size:
            return False
        delta = _skip_varint(data, position + 1, end)  # behind the attributes and the timestamp
        rest = _skip_varint(data, delta, end)
        if rest > end or delta == rest:
            return False
        if not buffer_reserve(out, 2 * VARINT32_BYTES_MAX + length):
            raise MemoryError
        p = varint_put(out.data + out.size, length - (rest - delta) + varint_size(number))
        memcpy(p, data + position, delta - position)
        p = varint_put(p + (delta - position), number)
        memcpy(p, data + rest, end - rest)
        out.size = p + (end - rest) - out.data
        position = end
        number += 1
    return True


def number_records(data):
    cdef Py_buffer view
    cdef batch_header header
    cdef byte_buffer out
    cdef const uint8_t *p
    cdef bytearray numbered
    memset(&out, 0, sizeof(out))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        p = <const uint8_t *>view.buf
        if batch_read(p, view.len, &header) != BATCH_WHOLE or header.size != view.len:
            return None
        if header.attributes & ATTRIBUTE_CODEC:
            return None
        if not buffer_reserve(&out, header.size):
            raise MemoryError
        memcpy(out.data, p, BATCH_HEADER_SIZE)
        out.size = BATCH_HEADER_SIZE
        if not _number(&out, p + BATCH_HEADER_SIZE, header.size - BATCH_HEADER_SIZE):
            return None
        if out.size > INT32_MAX:
            return None
        store_be32(out.data + BATCH_LENGTH, <uint32_t>(out.size - BATCH_LEADER_EPOCH))
        store_be32(
            out.data + BATCH_CRC,
            _crc(0, out.data + BATCH_ATTRIBUTES, out.size - BATCH_ATTRIBUTES),
        )
        numbered = bytearray(0)
        PyByteArray_Resize(numbered, out.size)
        memcpy(PyByteArray_AS_STRING(numbered), out.data, out.size)
        return numbered
    finally:
        buffer_free(&out)
        PyBuffer_Release(&view)


cdef int require_inside(Batch batch, Py_ssize_t size) except -1:
    """Check that a batch, which may have been read from another buffer, is in one of this size."""
    if batch.size < BATCH_HEADER_SIZE or batch.position > size - batch.size:
        raise ValueError("the batch is not in this buffer")
    return 0


cdef uint8_t *_writable(Py_buffer *view, object data, Batch batch) except NULL:
    """Open `data` for writing; return the place of `batch` in it."""
    PyObject_GetBuffer(data, view, PyBUF_WRITABLE)
    try:
        require_inside(batch, view.len)
    except ValueError:
        PyBuffer_Release(view)
        raise
    return <uint8_t *>view.buf + batch.position


def patch_offsets(data, Batch batch not None, *, int64_t base_offset, int32_t leader_epoch):
    cdef Py_buffer view
    cdef uint8_t *p = _writable(&view, data, batch)
    store_be64(p + BATCH_BASE_OFFSET, <uint64_t>base_offset)
    store_be32(p + BATCH_LEADER_EPOCH, <uint32_t>leader_epoch)
    PyBuffer_Release(&view)
    batch.base_offset = base_offset
    batch.leader_epoch = leader_epoch


def patch_timestamps(
    data, Batch batch not None, *, int64_t max_timestamp, bint log_append_time
):
    cdef Py_buffer view
    cdef uint8_t *p = _writable(&view, data, batch)
    batch.attributes &= ~ATTRIBUTE_LOG_APPEND_TIME
    if log_append_time:
        batch.attributes |= ATTRIBUTE_LOG_APPEND_TIME
    batch.max_timestamp = max_timestamp
    store_be16(p + BATCH_ATTRIBUTES, <uint16_t>batch.attributes)
    store_be64(p + BATCH_MAX_TIMESTAMP, <uint64_t>max_timestamp)
    batch.crc = _crc(0, p + BATCH_ATTRIBUTES, batch.size - BATCH_ATTRIBUTES)
    store_be32(p + BATCH_CRC, batch.crc)
    PyBuffer_Release(&view)


@cython.final
@cython.freelist(256)
cdef class Record:
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers

    def __init__(self, int64_t offset, int64_t timestamp, key, value, headers=()):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = tuple(headers)

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return _values(self) == _values(other)

    __hash__ = None

    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )


cdef tuple _values(Record record):
    return record.offset, record.timestamp, record.key, record.value, record.headers


include "record_values.pxi"


def decode_records(payload, Batch batch not None):
    cdef Py_buffer view
    cdef record_walk walk
    cdef record_view found
    cdef Record record
    cdef const uint8_t *data
    cdef list records = []
    cdef bint log_append_time = batch.attributes & ATTRIBUTE_LOG_APPEND_TIME != 0
    if walk_begin(&walk, batch.record_count, batch.last_offset_delta,
                  batch.base_timestamp, False) != WALK_FINE:
        invalid_record(&walk)
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *>view.buf
        while walk_next(&walk, data, view.len, &found) == WALK_RECORD:
            record = Record.__new__(Record)
            record.offset = wrapping_add(batch.base_offset, found.offset_delta)
            record.timestamp = batch.max_timestamp if log_append_time else found.timestamp
            record.key = _bytes(data, found.key, found.key_size)
            record.value = _bytes(data, found.value, found.value_size)
            record.headers = _headers(data, &found) if found.header_count else ()
            records.append(record)
        if walk_end(&walk) != WALK_FINE:
            invalid_record(&walk)
        return records
    finally:
        PyBuffer_Release(&view)


include "batch_writer.pxi"
