"""What the other kernels use of the file kernel."""

from libc.stdint cimport int64_t, uint8_t


cdef class FileRegion:
    cdef readonly object file
    cdef readonly int64_t position
    cdef readonly Py_ssize_t length
    cdef int64_t seen_ns  # when all of it was in memory


cdef bint region_is_resident(FileRegion region) except -1
cdef bint read_at_hand(FileRegion region, uint8_t *into) except -1
