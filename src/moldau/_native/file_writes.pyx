"""The file kernel: pieces of memory written to a file in one go."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_SetFromErrno
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.errno cimport EINTR, errno

cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t writev(int fd, const iovec *pieces, int count)

cdef enum:
    PIECES_PER_CALL = 1024  # IOV_MAX, on Linux as on macOS
    # Below this many bytes another thread would wait longer for the lock than for us.
    NOGIL_BYTES_MIN = 1 << 16


cdef ssize_t _write(int fd, const iovec *pieces, int count, size_t size) noexcept:
    if size < NOGIL_BYTES_MIN:
        return writev(fd, pieces, count)
    with nogil:
        return writev(fd, pieces, count)


cdef int _write_all(int fd, iovec *pieces, Py_ssize_t count, size_t size) except -1:
    cdef ssize_t written
    while count:
        written = _write(fd, pieces, <int>min(count, PIECES_PER_CALL), size)
        if written < 0:
            if errno == EINTR:
                continue
            PyErr_SetFromErrno(OSError)
        size -= <size_t>written
        while count and <size_t>written >= pieces.iov_len:
            written -= <ssize_t>pieces.iov_len
            pieces += 1
            count -= 1
        if count:
            pieces.iov_base = <char *>pieces.iov_base + written
            pieces.iov_len -= <size_t>written
    return 0


def write_pieces(int fd, pieces not None):
    cdef Py_ssize_t count = len(pieces), opened = 0
    cdef Py_buffer *views
    cdef iovec *places
    cdef size_t size = 0
    if not count:
        return
    views = <Py_buffer *>PyMem_Malloc(count * (sizeof(Py_buffer) + sizeof(iovec)))
    if views == NULL:
        raise MemoryError
    places = <iovec *>(views + count)
    try:
        for piece in pieces:
            PyObject_GetBuffer(piece, &views[opened], PyBUF_SIMPLE)
            places[opened].iov_base = views[opened].buf
            places[opened].iov_len = <size_t>views[opened].len
            size += <size_t>views[opened].len
            opened += 1
        _write_all(fd, places, count, size)
    finally:
        while opened:
            opened -= 1
            PyBuffer_Release(&views[opened])
        PyMem_Free(views)
