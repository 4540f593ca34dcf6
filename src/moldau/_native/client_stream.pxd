"""The types of the client-stream kernel."""

from libc.stdint cimport int64_t, uint8_t

from moldau._native.connection cimport ClientConnection
from moldau._native.meters cimport Tally


cdef class ReceiveArena:
    cdef readonly object memory
    cdef readonly list retired
    cdef public Py_ssize_t position
    cdef uint8_t* start
    cdef Py_ssize_t size
    cdef Py_ssize_t chunk_bytes

    cpdef bint is_full(self)
    cpdef int end_turn(self) except -1


cdef class ListenerTurns:
    cdef readonly ReceiveArena buffers
    cdef readonly Tally received_bytes
    cdef readonly Tally sent_bytes
    cdef readonly object monotonic
    cdef readonly list starved
    cdef object clock
    cdef object call_soon
    cdef object on_turn
    cdef object failed
    cdef list latencies
    cdef list awake
    cdef object instant
    cdef double left_at
    cdef bint is_turning

    cpdef object now(self)
    cpdef int schedule(self) except -1
    cdef int make_room(self) except -1
    cdef int end(self) except -1


cdef class ClientStream:
    cdef readonly ClientConnection connection
    cdef readonly ListenerTurns turns
    cdef public object transport
    cdef public double active
    cdef public bint is_reading
    cdef public bint is_closing
    cdef public object own
    cdef public Py_ssize_t own_end
    cdef public Py_ssize_t own_limit
    cdef public int64_t turn_bytes
    cdef bint is_awake

    cdef int turn(self) except -1
    cdef int send(self) except -1
