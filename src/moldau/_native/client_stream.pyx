"""The client-stream kernel: what the loop does for every request and response, in turns.

Most requests arrive whole, in the arena that all connections share, and most responses are small:
that is done here. Requests that come in parts, responses that refer to other memory, and a
connection's beginning and end are left to the Python class that is made of `ClientStream`.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_CheckExact
from libc.stdint cimport int64_t, uint8_t

from moldau._native.connection cimport Call, ClientConnection
from moldau._native.meters cimport Buckets, Tally

cdef enum:
    API_KEY_MAX = 255

TURN_BYTES_MAX = 1 << 20
JOINED_BYTES_MAX = 16 << 10

cdef int64_t turn_bytes_max = TURN_BYTES_MAX
cdef int64_t joined_bytes_max = JOINED_BYTES_MAX


cdef class ReceiveArena:
    def __init__(self, memory, Py_ssize_t chunk_bytes):
        cdef Py_buffer view
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        self.start = <uint8_t*>view.buf
        self.size = view.len
        PyBuffer_Release(&view)
        self.memory = memory
        self.chunk_bytes = chunk_bytes
        self.retired = []

    def __len__(self):
        return min(self.chunk_bytes, self.size - self.position)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        cdef Py_ssize_t size = min(self.chunk_bytes, self.size - self.position)
        PyBuffer_FillInfo(buffer, self, self.start + self.position, size, False, flags)

    cpdef bint is_full(self):
        return self.position + self.chunk_bytes > self.size

    cpdef int end_turn(self) except -1:
        self.position = 0
        if self.retired:
            self.reuse()
        return 0


@cython.final
cdef class ListenerTurns:
    def __init__(
        self,
        ReceiveArena buffers not None,
        Tally received_bytes not None,
        Tally sent_bytes not None,
        latencies,
        *,
        clock,
        monotonic,
        call_soon,
        on_turn,
        failed,
    ):
        self.buffers = buffers
        self.received_bytes = received_bytes
        self.sent_bytes = sent_bytes
        self.latencies = [latencies.get(key) for key in range(API_KEY_MAX + 1)]
        self.clock = clock
        self.monotonic = monotonic
        self.call_soon = call_soon
        self.on_turn = on_turn
        self.failed = failed
        self.awake = []
        self.starved = []

    cpdef object now(self):
        if self.instant is None:
            self.instant = self.clock()
            self.schedule()
        return self.instant

    cpdef int schedule(self) except -1:
        if not self.is_turning:
            self.is_turning = True
            self.call_soon(self.run)
        return 0

    cdef int make_room(self) except -1:
        """End the turn early, because the arena is full."""
        self.on_turn()
        return self.buffers.end_turn()

    def run(self):
        self.instant = None
        try:
            self.on_turn()
        finally:
            self.end()

    cdef int end(self) except -1:
        cdef list awake
        cdef ClientStream client
        self.buffers.end_turn()
        if self.starved and self.buffers.has_room:
            for client in self.starved:
                client.wake()
            self.starved.clear()
        # A client that was woken until here has this turn; one that is woken from here on, the next.
        self.is_turning = False
        awake, self.awake = self.awake, []
        if awake:
            self.left_at = self.monotonic()
        for client in awake:
            try:
                client.turn()
            except Exception as error:
                self.failed(client, error)
        return 0

    def left(self, list calls not None):
        cdef Call call
        cdef Buckets latency
        for call in calls:
            if 0 <= call.api_key <= API_KEY_MAX:
                latency = self.latencies[call.api_key]
                if latency is not None:
                    latency.observe(self.left_at - <double>call.received[0])


cdef class ClientStream:
    def __init__(self, ListenerTurns turns not None, router, peer, limits, double now):
        self.turns = turns
        self.active = now
        self.is_reading = True
        self.connection = ClientConnection(router, peer, limits, self.wake, turns.left)

    def get_buffer(self, size_hint):
        cdef ReceiveArena buffers
        if self.own is not None:
            return self.own[self.own_end : self.own_limit]
        buffers = self.turns.buffers
        if buffers.is_full():
            self.turns.make_room()
        return buffers

    def buffer_updated(self, Py_ssize_t size):
        cdef ReceiveArena buffers
        cdef Py_ssize_t start, end, rest
        self.turns.received_bytes.value += size
        self.turn_bytes += size
        if self.own is not None:
            self.own_received(size)
            return
        now = self.turns.now()
        self.active = now[0]
        buffers = self.turns.buffers
        start = buffers.position
        end = start + size
        rest = self.connection.receive(buffers.memory, start, end, now)
        if rest > start:
            buffers.position += size
        if rest < end or self.turn_bytes >= turn_bytes_max or self.connection.is_hanging_up:
            self.rest_received(rest, end)

    def wake(self):
        if not self.is_awake:
            self.is_awake = True
            self.turns.awake.append(self)
            self.turns.schedule()

    cdef int turn(self) except -1:
        """Send what is to be sent, and go on with what has waited."""
        self.is_awake = False
        self.turn_bytes = 0
        if self.transport is None or self.transport.is_closing():
            return 0
        self.send()
        if (
            not self.is_reading
            or self.own is not None
            or self.connection.must_close
            or self.is_closing
        ):
            self.go_on()
        return 0

    cdef int send(self) except -1:
        cdef ClientConnection connection = self.connection
        cdef int64_t size = connection.outgoing_bytes
        cdef list pieces = connection.outgoing
        cdef Py_ssize_t count = len(pieces)
        if connection.unsent_bytes or (count > 1 and size > joined_bytes_max):
            self.send_pieces()
            return 0
        for piece in pieces:
            if not PyBytes_CheckExact(piece):
                self.send_pieces()
                return 0
        pieces = connection.take_pieces()
        if count:
            self.turns.sent_bytes.value += size
            self.transport.write(pieces[0] if count == 1 else b"".join(pieces))
        connection.gone(self.transport.get_write_buffer_size())
        return 0
