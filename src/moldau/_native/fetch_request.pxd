"""What the fetch kernel uses of the fetch-request kernel."""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    UUID_BYTES = 16
    FETCH_VERSION_MIN = 4
    FETCH_VERSION_MAX = 18
    # Versions that changed both the request and its answer.
    LOG_START_SINCE = 5
    SESSION_SINCE = 7
    FLEXIBLE_SINCE = 12
    TOPIC_ID_SINCE = 13


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
