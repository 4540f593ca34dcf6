"""What the other kernels use of the file kernel."""

from libc.stdint cimport int64_t


cdef class FileRegion:
    cdef readonly object file
    cdef readonly int64_t position
    cdef readonly Py_ssize_t length
