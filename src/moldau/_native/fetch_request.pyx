"""The fetch-request kernel: what clients fetch, their sessions, and requests that are usual.

Nothing is refused here: what is unusual or malformed is left to the codec.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "wire.h":
    uint16_t load_be16(const uint8_t*)
    uint32_t load_be32(const uint8_t*)
    uint64_t load_be64(const uint8_t*)
    int load_uvarint32(const uint8_t*, const uint8_t*, uint32_t*)
    void store_be32(uint8_t*, uint32_t)

cdef enum:
    INDEX_BYTES = 4
    # The versions that changed the request.
    LEADER_EPOCH_SINCE = 9
    RACK_SINCE = 11
    REPLICA_ID_UNTIL = 14
    # Of more partitions, a fetch that waits looks only at those that have changed: not here.
    PARTITIONS_MAX = 64

cdef bytes NO_TOPIC = bytes(UUID_BYTES)


@cython.final
cdef class FetchedPartition:
    def __init__(self, str topic not None, bytes topic_id not None, partition):
        cdef bytes name = topic.encode() if topic else topic_id
        cdef Py_ssize_t size = len(name)
        self.topic = self.resolved_name = topic
        self.topic_id = topic_id
        self.index = partition.partition
        self.key = PyBytes_FromStringAndSize(NULL, size + INDEX_BYTES)
        memcpy(PyBytes_AS_STRING(self.key), PyBytes_AS_STRING(name), size)
        store_be32(<uint8_t*>PyBytes_AS_STRING(self.key) + size, <uint32_t>self.index)
        self.high_watermark = self.log_start = -1
        self.update(partition)

    def update(self, partition):
        self.fetch_offset = partition.fetch_offset
        self.max_bytes = partition.partition_max_bytes
        self.leader_epoch = partition.current_leader_epoch
        self.last_fetched_epoch = partition.last_fetched_epoch

    cdef int take(self, FetchedPartition other) noexcept:
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.leader_epoch = other.leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch
        return 0

    cdef int name_topic(self, bint is_id, Py_ssize_t size) except -1:
        """Take the topic's name or id from the key."""
        self.topic = "" if is_id else PyUnicode_DecodeUTF8(PyBytes_AS_STRING(self.key), size, NULL)
        self.topic_id = self.key[:size] if is_id else NO_TOPIC
        self.resolved_name = self.topic
        return 0

    def __repr__(self):
        return f"<FetchedPartition {self.resolved_name}-{self.index} from {self.fetch_offset}>"


def take_partitions(dict wanted not None, request):
    cdef FetchedPartition known
    cdef bytes name, key
    for topic in request.topics:
        name = (<str>topic.topic).encode() or topic.topic_id
        for partition in topic.partitions:
            key = name + (<int32_t>partition.partition).to_bytes(INDEX_BYTES, "big", signed=True)
            known = wanted.get(key)
            if known is None:
                known = FetchedPartition(topic.topic, topic.topic_id, partition)
                wanted[known.key] = known
            else:
                known.update(partition)
    for forgotten in request.forgotten_topics_data:
        name = (<str>forgotten.topic).encode() or forgotten.topic_id
        for index in forgotten.partitions:
            wanted.pop(name + (<int32_t>index).to_bytes(INDEX_BYTES, "big", signed=True), None)


@cython.final
cdef class FetchSession:
    def __init__(self, int32_t session_id, dict wanted not None, *, bint uses_ids, double now):
        self.id = session_id
        self.epoch = 1
        self.uses_ids = uses_ids
        self.wanted = wanted
        self.created = self.used = now

    def serve_last(self, FetchedPartition wanted not None):
        if self.wanted.pop(wanted.key, None) is not None:
            self.wanted[wanted.key] = wanted

    def advance(self, double now):
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1
        self.used = now


# --------------------------------------------------------------------------------------- reading

cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end
    bint flexible
    bint is_unusual  # or malformed: the codec tells


cdef inline const uint8_t* step(Cursor* c, int64_t size) noexcept:
    """Return where `size` bytes are, and go behind them."""
    if size < 0 or c.end - c.at < size:
        c.is_unusual = True
        return NULL
    c.at += size
    return c.at - size


cdef inline int32_t get32(Cursor* c) noexcept:
    cdef const uint8_t* at = step(c, 4)
    return 0 if at == NULL else <int32_t>load_be32(at)


cdef inline int64_t get64(Cursor* c) noexcept:
    cdef const uint8_t* at = step(c, 8)
    return 0 if at == NULL else <int64_t>load_be64(at)


cdef int64_t get_length(Cursor* c, int size) noexcept:
    """Read a length or a count, which has `size` bytes where it is not a varint."""
    cdef uint32_t value = 0
    cdef const uint8_t* at
    cdef int used
    if c.flexible:
        used = load_uvarint32(c.at, c.end, &value)
        if used < 0:
            c.is_unusual = True
            return 0
        c.at += used
        return <int64_t>value - 1
    at = step(c, size)
    if at == NULL:
        return 0
    return <int16_t>load_be16(at) if size == 2 else <int32_t>load_be32(at)


cdef inline void skip_no_tags(Cursor* c) noexcept:
    cdef const uint8_t* at
    if c.flexible:
        at = step(c, 1)
        if at != NULL and at[0]:
            c.is_unusual = True


@cython.final
cdef class PlainFetch:
    def in_turn_from(self, bytes first):
        cdef Py_ssize_t number
        if first is not None and self.session is None:
            for number in range(len(self.wanted)):
                if (<FetchedPartition>self.wanted[number]).key == first:
                    self.wanted = self.wanted[number:] + self.wanted[:number]
                    return


def read_plain(
    data, Py_ssize_t start, Py_ssize_t end, int version, dict sessions not None, double now
):
    cdef Py_buffer view
    cdef Cursor cursor
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= start <= end <= view.len:
            raise IndexError(f"{start}:{end} is not within the {view.len} bytes of the buffer")
        cursor.at = <const uint8_t*>view.buf + start
        cursor.end = <const uint8_t*>view.buf + end
        cursor.flexible = version >= FLEXIBLE_SINCE
        cursor.is_unusual = not FETCH_VERSION_MIN <= version <= FETCH_VERSION_MAX
        return read_fetch(&cursor, version, sessions, now)
    finally:
        PyBuffer_Release(&view)


cdef PlainFetch read_fetch(Cursor* c, int version, dict sessions, double now):
    cdef PlainFetch fetch = PlainFetch.__new__(PlainFetch)
    cdef FetchSession session = None
    cdef const uint8_t* isolation
    cdef int32_t session_id = 0, epoch = -1
    if version <= REPLICA_ID_UNTIL and get32(c) != -1:
        return None
    fetch.max_wait_ms = get32(c)
    fetch.min_bytes = get32(c)
    fetch.max_bytes = get32(c)
    isolation = step(c, 1)
    if isolation == NULL:
        return None
    fetch.is_stable = isolation[0] == 1
    if version >= SESSION_SINCE:
        session_id = get32(c)
        epoch = get32(c)
    if epoch == -1:
        # A session that the client ends is not usual.
        if session_id:
            return None
    else:
        session = sessions.get(session_id)
        if session is None or epoch <= 0 or session.epoch != epoch:
            return None
        if session.uses_ids != (version >= TOPIC_ID_SINCE):
            return None
    changes = read_topics(c, version, session)
    if changes is None:
        return None
    if version >= SESSION_SINCE and get_length(c, 4) > 0:
        return None
    if version >= RACK_SINCE:
        step(c, get_length(c, 2))
    skip_no_tags(c)
    if c.is_unusual:
        return None
    if session is None:
        fetch.wanted = list((<dict>changes).values())
    else:
        for known, change in <list>changes:
            (<FetchedPartition>known).take(<FetchedPartition>change)
        session.advance(now)
        sessions[session_id] = sessions.pop(session_id)  # the last used is last
        fetch.session = session
        fetch.wanted = list(session.wanted.values())
    return fetch if 0 < len(fetch.wanted) <= PARTITIONS_MAX else None


cdef object read_topics(Cursor* c, int version, FetchSession session):
    """Return the partitions by key, or what changes of those in a session; None if unusual."""
    cdef dict fresh = {}
    cdef list changes = []
    cdef FetchedPartition partition, known
    cdef int64_t count = get_length(c, 4), index_count, name_size
    cdef const uint8_t* name
    if session is not None and len(session.wanted) > PARTITIONS_MAX:
        return None
    while count > 0 and not c.is_unusual:
        count -= 1
        name_size = UUID_BYTES if version >= TOPIC_ID_SINCE else get_length(c, 2)
        name = step(c, name_size)
        index_count = get_length(c, 4)
        if index_count > PARTITIONS_MAX:
            return None
        while index_count > 0 and not c.is_unusual:
            index_count -= 1
            partition = read_partition(c, version, name, name_size)
            if partition is None:
                return None
            if session is None:
                known = fresh.get(partition.key)
                if known is None:
                    try:
                        partition.name_topic(version >= TOPIC_ID_SINCE, name_size)
                    except UnicodeDecodeError:
                        return None
                    fresh[partition.key] = partition
                else:
                    known.take(partition)
                if len(fresh) > PARTITIONS_MAX:
                    return None
            else:
                known = session.wanted.get(partition.key)
                if known is None:
                    return None
                changes.append((known, partition))
        skip_no_tags(c)
    if c.is_unusual:
        return None
    return fresh if session is None else changes


cdef FetchedPartition read_partition(
    Cursor* c, int version, const uint8_t* name, int64_t name_size
):
    cdef FetchedPartition partition = FetchedPartition.__new__(FetchedPartition)
    partition.high_watermark = partition.log_start = -1
    partition.index = get32(c)
    partition.leader_epoch = get32(c) if version >= LEADER_EPOCH_SINCE else -1
    partition.fetch_offset = get64(c)
    partition.last_fetched_epoch = get32(c) if version >= FLEXIBLE_SINCE else -1
    if version >= LOG_START_SINCE:
        step(c, 8)
    partition.max_bytes = get32(c)
    skip_no_tags(c)
    if c.is_unusual:
        return None
    partition.key = PyBytes_FromStringAndSize(NULL, name_size + INDEX_BYTES)
    memcpy(PyBytes_AS_STRING(partition.key), name, name_size)
    store_be32(<uint8_t*>PyBytes_AS_STRING(partition.key) + name_size, <uint32_t>partition.index)
    return partition
