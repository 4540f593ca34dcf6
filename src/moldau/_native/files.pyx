"""The file kernel: ranges of files, and whether the page cache has them."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.errno cimport EAGAIN, EINTR, EIO, errno
from libc.stdint cimport int64_t, uint8_t, uint64_t

import os

cdef extern from *:
    """
    #define _FILE_OFFSET_BITS 64
    #include <errno.h>
    #include <stdint.h>
    #include <sys/types.h>
    #include <sys/uio.h>
    #include <time.h>
    #include <unistd.h>
    #include <sys/socket.h>
    #ifdef __linux__
    #include <sys/sendfile.h>
    #include <sys/syscall.h>
    #endif
    #ifndef MSG_MORE
    #define MSG_MORE 0
    #endif
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif

    #define MOLDAU_CACHESTAT 451 /* the same on all architectures; glibc may be older than it */

    struct moldau_range { uint64_t position, length; };
    struct moldau_cached { uint64_t pages, dirty, writeback, evicted, recently_evicted; };

    /* Return how many pages of a range the page cache has; -1 where the system does not tell. */
    static int64_t cached_pages(int fd, uint64_t position, uint64_t length)
    {
    #ifdef __linux__
        struct moldau_range range = {position, length};
        struct moldau_cached cached = {0, 0, 0, 0, 0};
        if (syscall(MOLDAU_CACHESTAT, fd, &range, &cached, 0) == 0)
            return cached.pages;
    #endif
        return -1;
    }

    static int64_t monotonic_ns(void)
    {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    }

    /* Send a range of a file; elsewhere no region is made, because residency is not told. */
    static ssize_t send_range(int to, int fd, uint64_t position, size_t size)
    {
    #ifdef __linux__
        off_t at = position;
        return sendfile(to, fd, &at, size);
    #else
        errno = ENOSYS;
        return -1;
    #endif
    }

    /* Read what is in memory; -1 if nothing is. tmpfs cannot say, and never waits long. */
    static ssize_t read_nowait(int fd, void *into, size_t size, uint64_t position)
    {
    #ifdef RWF_NOWAIT
        struct iovec part = {into, size};
        ssize_t count = preadv2(fd, &part, 1, position, RWF_NOWAIT);
        if (count >= 0 || errno != EOPNOTSUPP)
            return count;
    #endif
        return pread(fd, into, size, position);
    }

    /* Whether a byte can be read without waiting, which the count does not say: a page that is
     * still being read counts, too. -1 where the file system does not tell. */
    static int is_at_hand(int fd, uint64_t position)
    {
    #ifdef RWF_NOWAIT
        char byte;
        struct iovec into = {&byte, 1};
        ssize_t count = preadv2(fd, &into, 1, position, RWF_NOWAIT);
        return count < 0 && errno == EOPNOTSUPP ? -1 : count == 1;
    #else
        return -1;
    #endif
    }
    """
    int MSG_MORE, MSG_NOSIGNAL
    ssize_t send(int to, const void *data, size_t size, int flags) nogil
    ssize_t send_range(int to, int fd, uint64_t position, size_t size) noexcept nogil
    ssize_t read_nowait(int fd, void *into, size_t size, uint64_t position) noexcept nogil
    int64_t cached_pages(int fd, uint64_t position, uint64_t length) noexcept nogil
    int is_at_hand(int fd, uint64_t position) noexcept nogil
    int64_t monotonic_ns() noexcept nogil

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int fd, void *buffer, size_t size, int64_t position)

cdef enum:
    SCRATCH_BYTES = 256 << 10
    # An answer is sent in the turn that makes it, as a rule: it need not be looked for twice.
    SEEN_NS_MAX = 10000000

cdef int64_t PAGE_BYTES = os.sysconf("SC_PAGESIZE")


@cython.final
cdef class FileRegion:
    def __init__(self, file, int64_t position, Py_ssize_t length):
        self.file = file
        self.position = position
        self.length = length

    def __len__(self):
        return self.length

    def __repr__(self):
        return f"<FileRegion {self.file!r} {self.position}:{self.position + self.length}>"


cdef bint region_is_resident(FileRegion region) except -1:
    if not is_resident(region.file.fd, region.position, region.length):
        return False
    region.seen_ns = monotonic_ns()
    return True


cdef bint read_at_hand(FileRegion region, uint8_t *into) except -1:
    """Read a region that is in memory; False if a part of it is not."""
    cdef int fd = region.file.fd
    cdef Py_ssize_t filled = 0
    cdef ssize_t count
    while filled < region.length:
        count = read_nowait(fd, into + filled, region.length - filled, region.position + filled)
        if count <= 0:
            return False
        filled += count
    return True


def tells_residency(int fd):
    return cached_pages(fd, 0, 1) >= 0 and is_at_hand(fd, 0) >= 0


def is_resident(int fd, int64_t position, int64_t length):
    cdef int64_t end = position + length
    if length <= 0:
        return True
    if cached_pages(fd, position, length) < (end - 1) // PAGE_BYTES - position // PAGE_BYTES + 1:
        return False
    return is_at_hand(fd, end - 1) == 1


def pull_in(int fd, int64_t position, int64_t length):
    cdef char *scratch = <char *>PyMem_RawMalloc(SCRATCH_BYTES)
    cdef ssize_t count = 1
    cdef int64_t left = length
    cdef int code = 0
    if scratch == NULL:
        raise MemoryError
    with nogil:
        while left > 0 and count:
            count = pread(fd, scratch, min(left, SCRATCH_BYTES), position)
            if count < 0:
                code = errno
                if code != EINTR:
                    break
                code = 0
                continue
            position += count
            left -= count
    PyMem_RawFree(scratch)
    if code:
        raise OSError(code, os.strerror(code))
    return length - left


# --------------------------------------------------------------------------------------- sending

@cython.final
cdef class PieceQueue:
    cdef list pieces
    cdef Py_ssize_t first
    cdef Py_ssize_t done  # bytes of the first piece
    cdef readonly int64_t unsent_bytes
    # Once a thread has read what comes next: it is sent, however much of it there is.
    cdef public bint is_pulled

    def __cinit__(self):
        self.pieces = []

    def add(self, list pieces not None, int64_t size):
        assert not self.pieces, "a later answer waits"
        self.pieces = pieces
        self.first = self.done = 0
        self.unsent_bytes = size

    def clear(self):
        self.pieces = []
        self.unsent_bytes = 0

    def next_range(self, int64_t size_max):
        cdef FileRegion region = self.pieces[self.first]
        return (
            region,
            region.position + self.done,
            min(<int64_t>(region.length - self.done), size_max),
        )

    def send(self, int to, int64_t size_max):
        cdef ssize_t sent
        cdef int64_t left = size_max
        while self.first < len(self.pieces):
            if left <= 0:
                return False
            piece = self.pieces[self.first]
            if isinstance(piece, FileRegion):
                if not self.is_pulled and not self.is_next_resident(<FileRegion>piece, left):
                    return None
                self.is_pulled = False
                sent = self.send_region(to, <FileRegion>piece, left)
                if not sent:
                    raise OSError(EIO, f"{piece} ends at {(<FileRegion>piece).position + self.done}")
            else:
                sent = self.send_bytes(to, piece)
            if sent < 0:
                if errno == EAGAIN:
                    return False
                if errno == EINTR:
                    continue
                raise OSError(errno, os.strerror(errno))
            left -= sent
            self.unsent_bytes -= sent
            self.done += sent
            if self.done == len(piece):
                self.first += 1
                self.done = 0
        self.pieces = []
        return True

    cdef bint is_next_resident(self, FileRegion region, int64_t size_max) except -1:
        if region.seen_ns and monotonic_ns() - region.seen_ns < SEEN_NS_MAX:
            return True
        return is_resident(
            region.file.fd,
            region.position + self.done,
            min(<int64_t>(region.length - self.done), size_max),
        )

    cdef ssize_t send_region(self, int to, FileRegion region, int64_t size_max) except? -2:
        cdef int fd = region.file.fd
        cdef int64_t position = region.position + self.done
        cdef int64_t size = min(<int64_t>(region.length - self.done), size_max)
        cdef ssize_t sent
        with nogil:
            sent = send_range(to, fd, position, size)
        return sent

    cdef ssize_t send_bytes(self, int to, piece) except? -2:
        cdef Py_buffer view
        cdef int flags = MSG_NOSIGNAL
        cdef ssize_t sent
        if self.first + 1 < len(self.pieces):
            flags |= MSG_MORE
        PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE)
        sent = send(to, <const char *>view.buf + self.done, view.len - self.done, flags)
        PyBuffer_Release(&view)
        return sent
