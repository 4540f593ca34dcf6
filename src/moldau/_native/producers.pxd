"""What the append kernel uses of the producers' kernel."""

from libc.stdint cimport int32_t, int64_t

from moldau._native.records cimport Batch

cdef enum:
    BATCHES_KEPT = 5  # as many as a client has in flight, so any of them can be resent

cdef struct kept_batch:
    int64_t last_offset
    int64_t timestamp
    int32_t last_sequence
    int32_t delta  # the last offset less the first


cdef struct producer_numbers:
    int64_t last_timestamp
    int64_t transaction_first_offset
    int32_t producer_epoch
    int32_t coordinator_epoch
    int32_t next_sequence
    int32_t kept_count
    kept_batch kept[BATCHES_KEPT]  # the oldest first


cdef class ProducerState:
    cdef readonly int64_t producer_id
    cdef producer_numbers numbers
    cdef producer_numbers marked
    cdef producer_numbers handed_marked  # what `marked` was when the last write was handed over
    cdef bint is_changed  # since the last mark
    cdef bint is_new  # came since the last mark
    cdef bint is_handed_new

    cdef bint follows(self, Batch batch) noexcept
    cdef int enter(self, int32_t producer_epoch) noexcept
    cdef int keep(self, const kept_batch *batch) noexcept
    cdef int note(self, Batch batch) noexcept


cdef class ProducerTable:
    cdef readonly dict states
    cdef list changed
    cdef list handed
    cdef public bint has_completed

    cdef bint admits(self, Batch batch) except -1
    cdef int mark_all(self) except -1
    cdef int hand_over(self) except -1
    cdef int mark_handed(self) except -1
