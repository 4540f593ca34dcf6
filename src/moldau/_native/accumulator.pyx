"""The producer's open batches: which partition a record goes to, and how it gets there quickly.

Every method runs from beginning to end under the interpreter's lock: what could run somebody's code
in between (headers, buffers, a partitioner) is done before a batch is looked at.
"""

cimport cython
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from moldau._native.encode cimport slice_
from moldau._native.records cimport (
    ATTRIBUTE_TRANSACTIONAL, BATCH_HEADER_SIZE, BATCH_WHOLE, BatchWriter, batch_header, batch_read,
    batch_rewrite,
)

from collections import namedtuple

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()

cdef extern from "murmur2.h" nogil:
    uint32_t c_murmur2 "murmur2"(const uint8_t *data, size_t size)
    int32_t murmur2_partition(const uint8_t *data, size_t size, int32_t partition_count)

# A record's bytes beside its key, value and headers: its length, attributes, both deltas, the
# lengths of key and value, the number of headers; and what a header has beside its bytes.
cdef enum:
    RECORD_OVERHEAD_MAX = 5 + 1 + 10 + 5 + 5 + 5 + 5
    HEADER_OVERHEAD_MAX = 10

# So many batches leave together, when their sender gives way no sooner.
cdef enum:
    DUE_BATCHES = 4

STICKY, ROUND_ROBIN = range(2)

cdef tuple NO_HEADERS = ()  # there is only one empty tuple

crc32c_initialize()


def murmur2(bytes data not None):
    return c_murmur2(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef int _read_header(bytes encoded, batch_header *header) except -1:
    if batch_read(<const uint8_t *>PyBytes_AS_STRING(encoded), len(encoded), header) != BATCH_WHOLE:
        raise ValueError("not a whole batch")
    return 0


include "pending_batch.pxi"


cdef bytes _bytes(str what, object data):
    """Return data as bytes; what is none says how it becomes some."""
    if data is None or PyBytes_CheckExact(data):
        return data
    if isinstance(data, str):
        raise TypeError(f"a record's {what} is bytes, not str: use {what}.encode()")
    if not PyObject_CheckBuffer(data):
        raise TypeError(f"a record's {what} is bytes, or None, not {type(data).__name__}")
    return bytes(data)


cdef slice_ _slice(bytes data) noexcept:
    cdef slice_ found
    found.data = NULL
    found.size = -1
    if data is not None:
        found.data = <const uint8_t *>PyBytes_AS_STRING(data)
        found.size = PyBytes_GET_SIZE(data)
    return found


cdef tuple _headers(object headers):
    cdef list checked = []
    if isinstance(headers, dict):
        headers = list(headers.items())
    if not isinstance(headers, (list, tuple)):  # an iterator could be read only once
        raise TypeError(f"headers are a list of (name, value), not {type(headers).__name__}")
    for name, value in headers:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is text, not {type(name).__name__}")
        checked.append((name, _bytes("header", value)))
    return tuple(checked)


cdef Py_ssize_t _size_max(bytes key, bytes value, tuple headers) except -1:
    cdef Py_ssize_t size = RECORD_OVERHEAD_MAX
    if key is not None:
        size += PyBytes_GET_SIZE(key)
    if value is not None:
        size += PyBytes_GET_SIZE(value)
    if headers is NO_HEADERS:
        return size
    for name, content in headers:
        # A character has at most four bytes.
        size += HEADER_OVERHEAD_MAX + 4 * len(name) + (0 if content is None else len(content))
    return size


def record_size_max(key, value, headers):
    return _size_max(_bytes("key", key), _bytes("value", value), _headers(headers))


@cython.final
cdef class _Topic:
    cdef str name
    cdef list open  # by partition: its open batch, or None
    cdef int32_t partition_count
    cdef list available  # partitions that have a leader
    cdef int32_t sticky
    cdef Py_ssize_t sticky_bytes
    cdef uint32_t turn


@cython.final
cdef class Accumulator:
    cdef readonly Py_ssize_t used
    cdef public bint is_closed, is_paused
    cdef Py_ssize_t batch_size, buffer_memory, record_bytes_max
    cdef double linger
    cdef bint ignores_keys, takes_turns
    cdef object choose, clock, wall_clock, wake, waiting
    cdef dict topics
    cdef dict open  # the open batches as keys, oldest first
    cdef list ready
    cdef bint wants_wake, is_awake
    cdef uint64_t chance

    def __init__(
        self, *, Py_ssize_t batch_size, double linger, Py_ssize_t buffer_memory,
        Py_ssize_t record_bytes_max, int partitioner=STICKY, bint ignores_keys=False, choose=None,
        clock, wall_clock=None, wake, waiting, uint64_t seed,
    ):
        self.batch_size = batch_size
        self.linger = linger
        self.buffer_memory = buffer_memory
        self.record_bytes_max = record_bytes_max
        self.takes_turns = partitioner == ROUND_ROBIN
        self.ignores_keys = ignores_keys
        self.choose = choose
        self.clock = clock
        self.wall_clock = wall_clock
        self.wake = wake
        self.waiting = waiting
        self.topics = {}
        self.open = {}
        self.ready = []
        self.chance = seed | 1

    def is_due(self):
        return len(self.ready) >= DUE_BATCHES

    def set_topic(self, str name not None, int32_t partition_count, available):
        cdef _Topic topic = self.topics.get(name)
        if topic is None:
            topic = _Topic.__new__(_Topic)
            topic.name = name
            topic.open = []
            topic.sticky = -1
            self.topics[name] = topic
        # There may be fewer when a topic was deleted and made anew: their batches stay till taken.
        topic.open += [None] * (partition_count - len(topic.open))
        topic.partition_count = partition_count
        topic.available = list(available) or list(range(partition_count))
        if topic.sticky >= 0 and topic.sticky not in topic.available:
            topic.sticky = -1

    def partition_count(self, str name not None):
        cdef _Topic topic = self.topics.get(name)
        return None if topic is None else topic.partition_count

    def append(self, topic, value, key=None, partition=None, timestamp_ms=None, headers=()):
        cdef bytes value_ = _bytes("value", value), key_ = _bytes("key", key)
        cdef tuple headers_ = NO_HEADERS if headers is NO_HEADERS else _headers(headers)
        cdef Py_ssize_t size = _size_max(key_, value_, headers_)
        cdef int64_t timestamp
        if timestamp_ms is not None:
            timestamp = timestamp_ms
        else:
            timestamp = _now_ms() if self.wall_clock is None else self.wall_clock()
        cdef int32_t place
        cdef PendingBatch batch
        cdef Delivery delivery
        cdef _Topic found = self.topics.get(topic)
        if (found is None or self.is_closed or self.is_paused or size > self.record_bytes_max
                or size > self.buffer_memory - self.used):
            return None
        place = self._place(found, partition, key_, value_, size)
        if not 0 <= place < found.partition_count:
            return None
        batch = self._batch(found, place, size)
        size = batch.writer.put(
            batch.record_count, timestamp, _slice(key_), _slice(value_), headers_
        )
        delivery = Delivery.__new__(Delivery)
        delivery.batch = batch
        delivery.index = batch.record_count
        delivery.timestamp_ms = timestamp
        batch.delivery_count += 1
        batch.record_count += 1
        batch.size += size
        self.used += size
        if place == found.sticky:
            found.sticky_bytes += size
        if self.wants_wake:
            self._wake()
        return delivery

    def add(self, topic, int32_t partition, bytes encoded not None):
        """Take a batch that is whole already, behind what is open for its partition."""
        cdef _Topic found = self.topics.get(topic)
        cdef batch_header header
        cdef PendingBatch batch
        cdef Delivery delivery
        if (found is None or self.is_closed or self.is_paused
                or (self.used and len(encoded) > self.buffer_memory - self.used)
                or not 0 <= partition < found.partition_count):
            return None
        _read_header(encoded, &header)
        batch = _new_batch(found.name, partition, self.clock(), self.waiting)
        batch.encoded = encoded
        batch.record_count = header.record_count
        batch.size = len(encoded)
        delivery = Delivery.__new__(Delivery)
        delivery.batch = batch
        delivery.timestamp_ms = header.base_timestamp
        batch.delivery_count = 1
        self.used += batch.size
        if found.open[partition] is not None:
            self._close(found, partition)
        self.ready.append(batch)
        self._wake()
        return delivery

    def choose_partition(self, topic, Py_ssize_t size):
        """The sticky choice for `size` bytes of records without keys."""
        cdef _Topic found = self.topics[topic]
        place = self._sticky(found, size)
        found.sticky_bytes += size
        return place

    cdef int32_t _place(
        self, _Topic topic, object partition, bytes key, bytes value, Py_ssize_t size
    ) except? -2:
        """Return the partition for a record."""
        if partition is not None:
            return partition
        if self.choose is not None:
            place = self.choose(topic.name, key, value, topic.partition_count)
            if not 0 <= place < topic.partition_count:
                raise ValueError(f"the partitioner chose {place} of {topic.partition_count} partitions")
            return place
        if self.takes_turns:
            topic.turn += 1
            return topic.available[topic.turn % <uint32_t>len(topic.available)]
        if key is not None and not self.ignores_keys:
            return murmur2_partition(
                <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), topic.partition_count
            )
        return self._sticky(topic, size)

    cdef int32_t _sticky(self, _Topic topic, Py_ssize_t size) except? -2:
        """KIP-794: stay until a batch is full, or two batches' bytes were sent there."""
        if topic.sticky >= 0:
            if topic.sticky_bytes < self.batch_size:
                return topic.sticky
            if topic.sticky_bytes < 2 * self.batch_size:
                if self._has_room(<PendingBatch>topic.open[topic.sticky], size):
                    return topic.sticky
        # xorshift64: which one is next need not be unpredictable.
        self.chance ^= self.chance << 13
        self.chance ^= self.chance >> 7
        self.chance ^= self.chance << 17
        topic.sticky = topic.available[(self.chance >> 32) % <uint64_t>len(topic.available)]
        topic.sticky_bytes = 0
        return topic.sticky

    cdef bint _has_room(self, PendingBatch batch, Py_ssize_t size) noexcept:
        return batch is not None and BATCH_HEADER_SIZE + batch.size + size <= self.batch_size

    cdef PendingBatch _batch(self, _Topic topic, int32_t partition, Py_ssize_t size):
        """Return an open batch with room, which there always is in a new one."""
        cdef PendingBatch batch = topic.open[partition], fresh
        if self._has_room(batch, size):
            return batch
        fresh = _new_batch(topic.name, partition, self.clock(), self.waiting)
        fresh.writer = BatchWriter()
        # Making one may have run the garbage collector, and that a finalizer that sends.
        if topic.open[partition] is not None:
            self._close(topic, partition)
        if not self.open:
            self.wants_wake = True  # somebody must look at the clock from now on
        topic.open[partition] = fresh
        self.open[fresh] = topic
        return fresh

    cdef int _close(self, _Topic topic, int32_t partition) except -1:
        """Let nothing more into a partition's open batch."""
        batch = topic.open[partition]
        topic.open[partition] = None
        del self.open[batch]
        self.ready.append(batch)
        self.wants_wake = True
        return 0

    cdef int _wake(self) except -1:
        """Call whoever takes batches; last of all, because other threads may run meanwhile."""
        self.wants_wake = False
        if not self.is_awake:
            self.is_awake = True
            self.wake()
        return 0

    def take(self, double now, *, bint everything=False):
        """Hand out the batches that are full, or as old as they may become; with the next time."""
        cdef PendingBatch batch
        while self.open:
            batch = next(iter(self.open))
            if not everything and batch.created + self.linger > now:
                break
            self._close(self.open[batch], batch.partition)
        taken, self.ready = self.ready, []
        self.is_awake = self.wants_wake = False
        return taken, (batch.created + self.linger if self.open else None)

    def release(self, Py_ssize_t size):
        """Have room again for what a finished batch held."""
        self.used -= size


cdef int64_t _now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000
