"""What the other kernels use of the meters."""

from libc.stdint cimport int64_t

cdef enum:
    BOUNDS_MAX = 32


cdef class Tally:
    cdef public int64_t value


cdef class Buckets:
    cdef readonly tuple bounds
    cdef readonly double sum
    cdef int bound_count
    cdef double bound[BOUNDS_MAX]
    cdef int64_t counted[BOUNDS_MAX + 1]

    cpdef int observe(self, double value, int64_t count=*) except -1
