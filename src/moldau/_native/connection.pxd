"""What the kernel of client streams uses of the connection kernel."""

from libc.stdint cimport int64_t, uint8_t

from moldau._native.frames cimport FrameSplitter, frame_head, plain_produce


cdef class ConnectionLimits:
    cdef readonly int64_t frame_bytes_max
    cdef readonly int64_t pending_requests_max
    cdef readonly int64_t pending_bytes_max
    cdef readonly int64_t unsent_bytes_max


cdef class Call:
    cdef readonly int api_key
    cdef public int version
    cdef readonly int correlation_id
    cdef readonly str client_id
    cdef readonly object peer
    cdef readonly object received
    cdef public object caller
    cdef readonly int64_t size
    cdef readonly bint is_answered
    cdef readonly bint hangs_up
    cdef public object sent
    cdef public object on_close
    # The response, while it waits for its turn: one piece, or a list of them.
    cdef object response
    cdef int64_t response_bytes
    cdef Call next


cdef class PlainProduce(Call):
    cdef readonly object replica
    cdef readonly int acks
    cdef readonly int64_t log_start
    # The topic and the partition, as the table of leaders has them.
    cdef bytes place
    cdef int timeout_ms
    cdef int64_t base_offset

    cdef int acknowledge(self) except -1
    cdef int refuse(self, error) except -1


cdef class ClientConnection:
    cdef readonly object peer
    cdef readonly bint has_more
    cdef readonly bint is_blocked
    cdef public bint is_hanging_up
    cdef readonly bint must_close
    cdef readonly int64_t unsent_bytes
    cdef object router
    cdef FrameSplitter splitter
    cdef dict leaders
    cdef list detours
    cdef list appended
    cdef ConnectionLimits limits
    cdef object wake
    cdef object left
    # The calls that have not left, in order.
    cdef Call first
    cdef Call last
    cdef int64_t count
    cdef int64_t unanswered
    # Of those, the ones behind which nothing may start.
    cdef int64_t barriers
    cdef int64_t pending_bytes
    cdef int64_t queued_bytes
    cdef list leaving
    cdef list outgoing
    cdef int64_t outgoing_bytes
    cdef list outgoing_sent
    cdef list going
    cdef bint is_closed

    cpdef Py_ssize_t receive(self, data, Py_ssize_t start, Py_ssize_t end, now) except -1
    cdef Py_ssize_t start_all(
        self, data, const uint8_t* at, Py_ssize_t start, Py_ssize_t end, now
    ) except -1
    cdef Call start(
        self, data, const uint8_t* at, const frame_head* head, str client_id, now
    )
    cdef PlainProduce find_plain(
        self, const uint8_t* at, const frame_head* head, plain_produce* found
    )
    cdef bint append(self, data, PlainProduce call, const plain_produce* found) except -1
    cdef bint may_start(self, int api_key)
    cdef int add(self, Call call) except -1
    cdef int fill(
        self, Call call, const frame_head* head, str client_id, now
    ) except -1
    cdef int finish(self, Call call) except -1
    cdef int leave(self, Call call) except -1
    cdef list take_pieces(self)
    cpdef int gone(self, int64_t unsent_bytes) except -1
