"""Records as a consumer hands them out: read from a batch, some at a time."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memset

from moldau._native.records cimport (
    ATTRIBUTE_LOG_APPEND_TIME, Batch, WALK_FINE, WALK_RECORD, header_next, header_view,
    invalid_record, record_view, record_walk, walk_begin, walk_end, walk_next, wrapping_add,
)


# No cycle can go through a record: it has texts, bytes and tuples of them. The collector would
# look at each all the same, and takes longer for that than it takes to make one.
@cython.final
@cython.no_gc
@cython.freelist(512)
cdef class Record:
    cdef readonly str topic
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp_ms
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef public int16_t delivery_count
    cdef bint log_append_time

    def __init__(
        self, str topic not None, int32_t partition, int64_t offset, *, int64_t timestamp_ms=-1,
        bytes key=None, bytes value=None, headers=(), int32_t leader_epoch=-1,
        bint log_append_time=False,
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = tuple(headers)
        self.leader_epoch = leader_epoch
        self.log_append_time = log_append_time

    @property
    def timestamp_type(self):
        return "LogAppendTime" if self.log_append_time else "CreateTime"

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return _values(self) == _values(other)

    __hash__ = None

    def __repr__(self):
        return (
            f"Record(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp_ms={self.timestamp_ms}, timestamp_type={self.timestamp_type!r}, "
            f"key={self.key!r}, value={self.value!r}, headers={self.headers!r}, "
            f"leader_epoch={self.leader_epoch})"
        )


cdef tuple _values(Record record):
    return (
        record.topic, record.partition, record.offset, record.timestamp_ms, record.key,
        record.value, record.headers, record.leader_epoch, record.log_append_time,
    )


include "record_values.pxi"


# No cycle can go through a reader either, and what it reads must not be part of one: the collector
# ends a memoryview that is still in use, which breaks it.
@cython.final
@cython.no_gc
cdef class RecordReader:
    cdef Py_buffer view
    cdef bint is_open
    cdef record_walk walk
    cdef Batch batch
    cdef str topic
    cdef int32_t partition

    def __init__(self, payload, Batch batch not None, str topic not None, int32_t partition):
        if self.is_open:
            raise ValueError("a reader is begun once")
        if walk_begin(&self.walk, batch.record_count, batch.last_offset_delta,
                      batch.base_timestamp, False) != WALK_FINE:
            invalid_record(&self.walk)
        self.batch = batch
        self.topic = topic
        self.partition = partition
        PyObject_GetBuffer(payload, &self.view, PyBUF_SIMPLE)
        self.is_open = True

    def __dealloc__(self):
        if self.is_open:
            PyBuffer_Release(&self.view)

    def close(self):
        if self.is_open:
            self.is_open = False
            PyBuffer_Release(&self.view)

    def read(self, list records not None, Py_ssize_t count, int64_t start_offset=0):
        cdef record_walk walk = self.walk
        cdef record_view found
        cdef Record record
        cdef const uint8_t *data = <const uint8_t *>self.view.buf
        cdef Py_ssize_t size = self.view.len
        cdef Batch batch = self.batch
        cdef str topic = self.topic
        cdef bint log_append_time = batch.attributes & ATTRIBUTE_LOG_APPEND_TIME != 0
        cdef int64_t offset
        if not self.is_open:
            return False
        memset(&found, 0, sizeof(record_view))
        while count > 0:
            if walk_next(&walk, data, size, &found) != WALK_RECORD:
                self.close()
                if walk_end(&walk) != WALK_FINE:
                    invalid_record(&walk)
                return False
            offset = wrapping_add(batch.base_offset, found.offset_delta)
            if offset < start_offset:
                continue
            record = Record.__new__(Record)
            record.topic = topic
            record.partition = self.partition
            record.offset = offset
            record.timestamp_ms = batch.max_timestamp if log_append_time else found.timestamp
            record.log_append_time = log_append_time
            record.leader_epoch = batch.leader_epoch
            record.key = _bytes(data, found.key, found.key_size)
            record.value = _bytes(data, found.value, found.value_size)
            record.headers = _headers(data, &found) if found.header_count else ()
            records.append(record)
            count -= 1
        self.walk = walk
        return True
