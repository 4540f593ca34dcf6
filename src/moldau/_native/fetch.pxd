"""The types of the fetch kernel."""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    PLACES_KEPT = 64


cdef class FetchedPartition:
    cdef readonly str topic
    cdef readonly bytes topic_id
    cdef public str resolved_name
    cdef readonly bytes key
    cdef readonly int32_t index
    cdef readonly int64_t fetch_offset
    cdef readonly int32_t max_bytes
    cdef readonly int32_t leader_epoch
    cdef readonly int32_t last_fetched_epoch
    cdef public int64_t high_watermark
    cdef public int64_t log_start

    cdef int take(self, FetchedPartition other) noexcept
    cdef int name_topic(self, bint is_id, Py_ssize_t size) except -1


cdef class FetchSession:
    cdef readonly int32_t id
    cdef public int32_t epoch
    cdef readonly bint uses_ids
    cdef readonly dict wanted
    cdef readonly double created
    cdef public double used


cdef class PlainFetch:
    cdef readonly int32_t max_wait_ms
    cdef readonly int32_t min_bytes
    cdef readonly int32_t max_bytes
    cdef readonly bint is_stable
    cdef readonly FetchSession session
    cdef readonly list wanted


cdef class ReadPlaces:
    cdef int64_t offsets[PLACES_KEPT]
    cdef int64_t positions[PLACES_KEPT]
    cdef int64_t sizes[PLACES_KEPT]
    cdef list segments

    cdef int find(self, int64_t offset) noexcept
    cdef int note(self, int64_t offset, segment, int64_t position, int64_t size) except -1


cdef class PlainRead:
    cdef readonly FetchedPartition wanted
    cdef readonly object replica
    cdef readonly object segment
    cdef ReadPlaces places
    cdef bint is_in_last_segment
    cdef readonly int64_t position
    cdef readonly int64_t length
    cdef readonly int64_t high_watermark
    cdef readonly int64_t stable_offset
    cdef readonly int64_t log_start
    cdef bint is_news
    # What a reader that goes on reads next, when this read ends where readers may not go further.
    cdef int64_t end_offset


cdef class PlainReads:
    cdef readonly list reads
    cdef readonly int64_t size
    cdef readonly bint is_urgent
    cdef readonly FetchedPartition left_out
    cdef readonly int64_t memory_bytes
