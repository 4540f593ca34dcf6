"""What the other kernels use of the log kernel."""

from cpython cimport array
from libc.stdint cimport int32_t, int64_t, uint8_t

from moldau._native.records cimport Batch, RecordStats

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


cdef class Ordinary:
    cdef int64_t batch_bytes_max
    cdef int64_t total_bytes_max
    cdef int64_t before_ms_max
    cdef int64_t after_ms_max
    cdef bint is_keyed

    cdef bint admits(self, Batch batch, RecordStats stats, bint is_client, int64_t now_ms) noexcept


cdef class Entries:
    cdef readonly array.array offsets, positions, timestamps, timestamp_offsets


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

    cdef int add(self, int64_t last_offset, int64_t max_timestamp, int64_t size) except -1
    cdef bint must_roll(self, Batch batch, int64_t now_ms) noexcept
    cdef int _drop(self, array.array numbers, Py_ssize_t count) except -1


cdef int assign_place(uint8_t *p, Batch batch, int64_t base_offset, int32_t leader_epoch) noexcept
