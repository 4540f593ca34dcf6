"""The connection kernel: a request on its way to its answer, and the order of one connection.

    received ---> started ---> answered ---> left
             |             |             |
             |             |             when all before it have left
             |             by its handler, at once or later
             when all before it are answered; a Produce when those that are not are Produces

A Produce has been appended when its handler returns, so the next may be appended behind it while
both wait for their sync. What may not start yet stays in the receive buffer, unread: there is no
queue of requests. What has started is bounded, in requests and bytes.

Nearly all requests of busy clients are Produces of one batch for one partition. Such a one is read,
appended and answered here; when its replica declines, it goes through the router as all others do.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from moldau._native.frames cimport (
    Frame, FrameSplitter, find_plain, frame_head, make_frame, plain_produce, write_produced,
)

from moldau.kernel.errors import ProtocolError

cdef extern from "wire.h":
    uint32_t load_be32(const uint8_t*)
    void store_be32(uint8_t*, uint32_t)

cdef enum:
    PRODUCE = 0
    NO_API = -1
    INDEX_BYTES = 4
    FRAMES_AT_ONCE_MAX = 128
    # What is queued is sent before more is answered: a client that does not read gets no further.
    QUEUED_BYTES_MAX = 64 << 10
    NO_APPEND_TIME = -1


@cython.final
cdef class ConnectionLimits:
    def __init__(
        self,
        *,
        int64_t frame_bytes_max,
        int64_t pending_requests_max,
        int64_t pending_bytes_max,
        int64_t unsent_bytes_max,
    ):
        self.frame_bytes_max = frame_bytes_max
        self.pending_requests_max = pending_requests_max
        self.pending_bytes_max = pending_bytes_max
        self.unsent_bytes_max = unsent_bytes_max


# ----------------------------------------------------------------------------------------- calls

@cython.freelist(256)
cdef class Call:
    def __init__(
        self,
        int api_key,
        int version,
        int correlation_id,
        str client_id,
        peer,
        received,
        caller,
        int64_t size=0,
    ):
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.peer = peer
        self.received = received
        self.caller = caller
        self.size = size

    @property
    def room(self):
        return self.caller.room

    def answer(self, response, sent=None):
        self.caller.answered(self, response, sent)

    def hang_up(self):
        self.caller.hang_up(self)

    def attempt(self, do):
        try:
            do()
        except Exception as error:
            self.caller.failed(self, error)


@cython.final
cdef class PlainProduce(Call):
    @property
    def is_done(self):
        return self.is_answered

    @property
    def deadline(self):
        return <double>self.received[0] + self.timeout_ms / 1000.0

    def committed(self, replica):
        if not self.is_answered:
            try:
                self.acknowledge()
            except Exception as error:
                (<ClientConnection>self.caller).failed(self, error)

    cdef int acknowledge(self) except -1:
        cdef const char* place = PyBytes_AS_STRING(self.place)
        cdef Py_ssize_t topic_size = PyBytes_GET_SIZE(self.place) - INDEX_BYTES
        if self.acks:
            self.response = write_produced(
                self.version,
                self.correlation_id,
                place,
                topic_size,
                <int>load_be32(<const uint8_t*>place + topic_size),
                self.base_offset,
                NO_APPEND_TIME,
                self.log_start,
            )
            self.response_bytes = PyBytes_GET_SIZE(self.response)
        return (<ClientConnection>self.caller).finish(self)

    def lost(self, replica, error):
        self.refuse(error)

    def expire(self):
        self.replica.unwait(self)
        self.refuse(None)

    cdef int refuse(self, error) except -1:
        cdef ClientConnection connection = self.caller
        if not self.is_answered:
            try:
                connection.router.refuse_plain(self, error)
            except Exception as failure:
                connection.failed(self, failure)
        return 0


# ----------------------------------------------------------------------------------------- order

@cython.final
cdef class ClientConnection:
    def __init__(self, router, peer, ConnectionLimits limits not None, wake, left):
        self.peer = peer
        self.router = router
        self.splitter = router.splitter
        self.leaders = router.leaders
        self.detours = router.detours
        self.appended = router.appended
        self.limits = limits
        self.wake = wake
        self.left = left
        self.leaving = []
        self.outgoing = []
        self.outgoing_sent = []
        self.going = []

    @property
    def is_quiet(self):
        is_taken = not self.outgoing and not self.outgoing_sent
        return self.first is None and is_taken and not self.unsent_bytes

    @property
    def room(self):
        return max(0, self.limits.unsent_bytes_max - self.queued_bytes - self.unsent_bytes)

    # ------------------------------------------------------------------------------- requests

    cpdef Py_ssize_t receive(self, data, Py_ssize_t start, Py_ssize_t end, now) except -1:
        cdef Py_buffer view
        self.is_blocked = self.has_more = False
        if self.is_hanging_up:
            return end
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start <= end <= view.len:
                raise IndexError(f"{start}:{end} is not within the {view.len} bytes of the buffer")
            return self.start_all(data, <const uint8_t*>view.buf, start, end, now)
        finally:
            PyBuffer_Release(&view)

    cdef Py_ssize_t start_all(
        self, data, const uint8_t* at, Py_ssize_t start, Py_ssize_t end, now
    ) except -1:
        cdef frame_head head
        cdef str client_id
        cdef Call call
        cdef int begun = 0
        try:
            while self.splitter.find(at, start, end, self.limits.frame_bytes_max, &head):
                if begun == FRAMES_AT_ONCE_MAX:
                    self.has_more = True
                    return start
                client_id = self.splitter.read_head(at, &head)
                if (self.unanswered or self.queued_bytes or self.unsent_bytes) and not (
                    self.may_start(head.api_key)
                ):
                    self.is_blocked = True
                    return start
                call = self.start(data, at, &head, client_id, now)
                begun += 1
                start = head.end
                if call.hangs_up:
                    return end
        except ProtocolError as error:
            call = Call(NO_API, 0, 0, None, self.peer, now, self)
            self.add(call)
            self.router.hang_up(call, error)
            return end
        return start

    cdef Call start(
        self, data, const uint8_t* at, const frame_head* head, str client_id, now
    ):
        """Have one request answered, now or later."""
        cdef plain_produce found
        cdef Call call = None
        if head.api_key == PRODUCE and not self.detours:
            call = self.find_plain(at, head, &found)
        if call is not None:
            self.fill(call, head, client_id, now)
            if self.append(data, <PlainProduce>call, &found):
                return call
        else:
            call = Call.__new__(Call)
            self.fill(call, head, client_id, now)
        self.router.start(call, data, make_frame(head, client_id))
        return call

    cdef int fill(
        self, Call call, const frame_head* head, str client_id, now
    ) except -1:
        call.api_key = head.api_key
        call.version = head.api_version
        call.correlation_id = head.correlation_id
        call.client_id = client_id
        call.peer = self.peer
        call.received = now
        call.caller = self
        call.size = head.end - head.start
        return self.add(call)

    cdef PlainProduce find_plain(
        self, const uint8_t* at, const frame_head* head, plain_produce* found
    ):
        """Return a call for a plain Produce to a partition that is led here; None for any other."""
        cdef PlainProduce call
        cdef Py_ssize_t topic_size
        cdef bytes place
        try:
            if not find_plain(at, head, found):
                return None
        except ProtocolError:
            return None  # its handler tells what is wrong
        topic_size = found.topic_end - found.topic_start
        place = PyBytes_FromStringAndSize(NULL, topic_size + INDEX_BYTES)
        memcpy(PyBytes_AS_STRING(place), at + found.topic_start, topic_size)
        store_be32(<uint8_t*>PyBytes_AS_STRING(place) + topic_size, <uint32_t>found.partition)
        replica = self.leaders.get(place)
        if replica is None:
            return None
        call = PlainProduce.__new__(PlainProduce)
        call.replica = replica
        call.place = place
        call.acks = found.acks
        call.timeout_ms = found.timeout_ms
        return call

    cdef bint append(self, data, PlainProduce call, const plain_produce* found) except -1:
        """Append a batch, to be answered when it is committed; False if the replica declines."""
        try:
            call.base_offset = call.replica.try_append(
                data, found.records_start, found.records_end, call.received, call.acks, call
            )
            if call.base_offset < 0:
                return False
            call.log_start = call.replica.log_start
        except Exception as error:
            self.router.fail(call, error)
            return True
        self.appended.append(call)
        return True

    cdef bint may_start(self, int api_key):
        if self.unsent_bytes or self.queued_bytes >= QUEUED_BYTES_MAX:
            return False
        if not self.unanswered:
            return True
        return (
            api_key == PRODUCE
            and not self.barriers
            and self.count < self.limits.pending_requests_max
            and self.pending_bytes < self.limits.pending_bytes_max
        )

    cdef int add(self, Call call) except -1:
        if self.last is None:
            self.first = call
        else:
            self.last.next = call
        self.last = call
        self.count += 1
        self.unanswered += 1
        self.pending_bytes += call.size
        if call.api_key != PRODUCE:
            self.barriers += 1
        return 0

    # -------------------------------------------------------------------------------- answers

    def answered(self, Call call not None, response, sent):
        assert not call.is_answered, "a call is answered once"
        if self.is_closed:
            call.is_answered = True
            if sent is not None:
                sent()
            return
        call.sent = sent
        if PyBytes_CheckExact(response):
            call.response_bytes = PyBytes_GET_SIZE(<bytes>response)
        elif response is not None:
            if type(response) is not list:
                try:
                    response = self.router.encode(response, call)
                except Exception as error:
                    self.router.watch.failed(call, error)
                    self.hang_up(call)
                    return
            for piece in <list>response:
                call.response_bytes += len(piece)
        call.response = response
        self.finish(call)

    def failed(self, Call call not None, error):
        self.router.fail(call, error)

    def hang_up(self, Call call not None):
        assert not call.is_answered, "a call is answered once"
        call.hangs_up = True
        self.is_hanging_up = True
        self.finish(call)

    cdef int finish(self, Call call) except -1:
        cdef Call first
        call.is_answered = True
        if self.is_closed:
            return 0
        self.unanswered -= 1
        self.pending_bytes -= call.size
        self.queued_bytes += call.response_bytes
        if call.api_key != PRODUCE:
            self.barriers -= 1
        while self.first is not None and self.first.is_answered:
            first = self.first
            self.first = first.next
            if self.first is None:
                self.last = None
            first.next = None
            self.count -= 1
            if first.sent is not None:
                self.outgoing_sent.append(first.sent)
            if first.hangs_up:
                self.must_close = True
            if not self.must_close:
                self.leave(first)
        self.wake()
        return 0

    cdef int leave(self, Call call) except -1:
        if call.response is not None:
            if PyBytes_CheckExact(call.response):
                self.outgoing.append(call.response)
            else:
                self.outgoing += <list>call.response
            self.outgoing_bytes += call.response_bytes
            # A handler that still has the call need not have the records in it.
            call.response = None
        self.leaving.append(call)
        return 0

    # -------------------------------------------------------------------------------- sending

    def take(self):
        size = self.outgoing_bytes
        return self.take_pieces(), size

    cdef list take_pieces(self):
        cdef list outgoing = self.outgoing
        cdef list leaving = self.leaving
        if outgoing:
            self.outgoing = []
            self.queued_bytes -= self.outgoing_bytes
            self.outgoing_bytes = 0
        if leaving:
            self.leaving = []
            self.left(leaving)
        if self.outgoing_sent:
            self.going += self.outgoing_sent
            self.outgoing_sent.clear()
        return outgoing

    cpdef int gone(self, int64_t unsent_bytes) except -1:
        self.unsent_bytes = unsent_bytes
        if not unsent_bytes and self.going:
            going, self.going = self.going, []
            for sent in going:
                sent()
        return 0

    def close(self):
        cdef Call call = self.first
        cdef Call following
        self.is_closed = self.is_hanging_up = True
        self.first = self.last = None
        self.outgoing.clear()
        self.going += self.outgoing_sent
        self.outgoing_sent.clear()
        while call is not None:
            if call.sent is not None:
                self.going.append(call.sent)
            if call.on_close is not None and not call.is_answered:
                call.on_close()
            following = call.next
            call.next = None
            call = following
        if self.peer.on_close is not None:
            self.peer.on_close()
        self.gone(0)
