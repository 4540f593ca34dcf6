"""What other kernels use of the append kernel."""

from libc.stdint cimport int32_t, int64_t

from moldau._native.log cimport Ordinary, Tail, tail_state
from moldau._native.producers cimport ProducerTable
from moldau._native.records cimport Batch

cdef class Place:
    cdef readonly int64_t offset
    cdef readonly int64_t segment_base_offset
    cdef readonly int64_t position


cdef class SegmentBase:
    cdef public object disk
    cdef public str path
    cdef public Tail tail
    cdef public int64_t size
    cdef readonly int64_t base_offset
    cdef public bint has_files

    cdef int count_written(self, const tail_state *written) except -1


cdef class Room:
    cdef public int64_t free_bytes
    cdef public int64_t floor_bytes

    cdef bint take(self, int64_t size) noexcept


cdef class StagedLogs:
    cdef list ends
    cdef readonly object now

    cdef int add(self, LogEnd end, object now) except -1


cdef struct write_end:
    int64_t offset
    int64_t segment_base_offset
    int64_t position


cdef class LogEnd:
    cdef public list segments
    cdef public int64_t log_start
    cdef public int64_t synced
    cdef public ProducerTable producers
    cdef public Ordinary ordinary
    cdef public int32_t epoch
    cdef readonly list pieces
    cdef public bint is_plain
    cdef public bint is_noted
    cdef public bint needs_sync
    cdef public int64_t held_at
    cdef public object dirty
    cdef public object take_back
    # A write that is under way elsewhere: up to where, and of what.
    cdef readonly object handed_write
    cdef SegmentBase handed_segment
    cdef tail_state handed
    # How far readers see.
    cdef readonly int64_t high_watermark
    cdef public Place high_place
    cdef write_end *writes
    cdef int first_write, write_count
    # Where it is.
    cdef StagedLogs staged
    cdef Room room
    cdef readonly object berth
    cdef readonly bint is_staged
    cdef readonly ReplicaBase leader

    cdef Tail last_tail(self)
    cdef int64_t try_stage(
        self, object data, Py_ssize_t start, Py_ssize_t end, int32_t leader_epoch, object now
    ) except? -2
    cdef bint is_ordinary(
        self, Batch batch, object stats, Tail tail, int32_t leader_epoch, int64_t now_ms
    ) except -1
    cdef bint enlist_for(self, int64_t size, object now) except -1
    cdef int finish_write(self, SegmentBase segment) except -1
    cdef int note_dirty(self, SegmentBase segment) except -1
    cdef int note_end(self, int64_t offset, SegmentBase segment) except -1
    cdef bint advance_to(self, int64_t offset) except -1
    cdef int64_t durable(self) except? -1


cdef class TopicTraffic:
    cdef public int64_t partitions
    cdef public int64_t messages_in
    cdef public int64_t bytes_in
    cdef public int64_t bytes_rejected
    cdef public int64_t bytes_out
    cdef public int64_t produce_requests
    cdef public int64_t produce_failed
    cdef public int64_t fetch_requests
    cdef public int64_t fetch_failed


cdef class ReplicaBase:
    cdef readonly TopicTraffic traffic
    cdef public int32_t leader_epoch
    cdef public bint is_under_min_in_sync
    cdef public object callbacks
    cdef public dict readers
    cdef object led
    cdef LogEnd end

    cdef int64_t append_plain(
        self, object data, Py_ssize_t start, Py_ssize_t end, object now, int acks, object callback
    ) except? -2
    cdef int commit_durable(self) except -1
