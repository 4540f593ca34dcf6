"""What the other kernels use of the record kernel."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from moldau._native.encode cimport byte_buffer, record_fields, slice_

cdef extern from "batch.h" nogil:
    enum:
        BATCH_HEADER_SIZE
        ATTRIBUTE_CODEC
        ATTRIBUTE_LOG_APPEND_TIME
        ATTRIBUTE_TRANSACTIONAL
        ATTRIBUTE_CONTROL
        ATTRIBUTE_DELETE_HORIZON
        BATCH_WHOLE
        BATCH_PARTIAL
        BATCH_BAD_MAGIC

    ctypedef struct batch_header:
        int64_t base_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int64_t size
        int32_t leader_epoch
        int32_t last_offset_delta
        int32_t base_sequence
        int32_t record_count
        uint32_t crc
        int16_t attributes
        int16_t producer_epoch

    int batch_read(const uint8_t *p, int64_t available, batch_header *h)
    uint32_t batch_crc(const uint8_t *p, int64_t size)
    void batch_write(uint8_t *p, const batch_header *h)
    void batch_rewrite(uint8_t *p, const batch_header *h)
    int64_t wrapping_add(int64_t a, int64_t b)
    int64_t wrapping_subtract(int64_t a, int64_t b)

cdef extern from "walk.h" nogil:
    enum:
        WALK_RECORD
        WALK_FINE
        WALK_LEFT_OVER
        WALK_COUNT
        WALK_OFFSET_RANGE
        WALK_OFFSET_DELTA
        RECORD_SIZE_MIN

    ctypedef struct record_walk:
        int error
        int32_t records_done
        int64_t max_timestamp
        int64_t min_timestamp
        int32_t max_timestamp_delta
        int32_t keyless_count

    ctypedef struct record_view:
        int64_t timestamp
        int64_t key
        int64_t value
        int64_t headers
        int64_t end
        int32_t offset_delta
        int32_t key_size
        int32_t value_size
        int32_t header_count

    ctypedef struct header_view:
        int64_t key
        int64_t value
        int32_t key_size
        int32_t value_size

    const char *walk_message(int error)
    int walk_begin(record_walk *w, int32_t record_count, int32_t last_offset_delta,
                   int64_t base_timestamp, int consecutive)
    int walk_next(record_walk *w, const uint8_t *data, int64_t size, record_view *view)
    bint header_next(const uint8_t *data, int64_t *position, int64_t end, header_view *h)
    int walk_piece(record_walk *w, const uint8_t *data, int64_t size)
    int walk_end(record_walk *w)

cdef class Batch:
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t size
    cdef readonly int64_t base_offset
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly int32_t leader_epoch
    cdef readonly int32_t last_offset_delta
    cdef readonly int32_t base_sequence
    cdef readonly int32_t record_count
    cdef readonly uint32_t crc
    cdef readonly int16_t attributes
    cdef readonly int16_t producer_epoch

cdef class RecordStats:
    cdef readonly int32_t record_count
    cdef readonly int64_t max_timestamp
    cdef readonly int32_t max_timestamp_delta
    cdef readonly int64_t min_timestamp
    cdef readonly int32_t keyless_count

cdef class BatchWriter:
    cdef bytearray buffer  # room for the header, then records
    cdef byte_buffer headers  # of the record at hand
    cdef readonly Py_ssize_t size
    cdef readonly int32_t record_count
    cdef int64_t base_offset
    cdef int64_t base_timestamp
    cdef bint base_timestamp_is_set
    cdef int64_t max_timestamp
    cdef int64_t last_offset_delta
    cdef Py_ssize_t put(
        self, int64_t offset_delta, int64_t timestamp, slice_ key, slice_ value, object headers
    ) except -1
    cdef Py_ssize_t _append(
        self, int64_t offset_delta, int64_t timestamp, object key, object value, object headers
    ) except -1
    cdef Py_ssize_t _gather(self, object headers) except -1
    cdef Py_ssize_t _write(self, const record_fields *fields) except -1

cdef Batch make_batch(const batch_header *header, Py_ssize_t position)
cdef int require_inside(Batch batch, Py_ssize_t size) except -1
cdef int invalid_record(const record_walk *walk) except -1
cdef list check_range(const uint8_t *data, Py_ssize_t start, Py_ssize_t end, bint consecutive)
cdef bytes assemble(batch_header *header, object payload)
