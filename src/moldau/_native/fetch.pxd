"""The types of the fetch kernel."""

from libc.stdint cimport int64_t

from moldau._native.fetch_request cimport FetchedPartition

cdef enum:
    PLACES_KEPT = 64


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
