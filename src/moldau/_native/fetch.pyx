"""The fetch kernel: a fetch that finds nothing unusual, from its partitions to its response.

What is unusual is left to Python: errors, partitions that are not led here, readers beyond the high
watermark, diverging epochs, aborted transactions, and data that is not in memory.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from moldau._native.files cimport FileRegion, read_at_hand, region_is_resident

cdef extern from "wire.h":
    uint16_t load_be16(const uint8_t*)
    uint32_t load_be32(const uint8_t*)
    int load_uvarint32(const uint8_t*, const uint8_t*, uint32_t*)
    uint64_t load_be64(const uint8_t*)
    void store_be16(uint8_t*, uint16_t)
    void store_be32(uint8_t*, uint32_t)
    void store_be64(uint8_t*, uint64_t)
    int store_uvarint32(uint8_t*, uint32_t)
    int uvarint32_size(uint32_t)

cdef enum:
    INDEX_BYTES = 4
    UUID_BYTES = 16
    # The versions that changed the answer to a Fetch.
    FETCH_VERSION_MIN = 4
    LOG_START_SINCE = 5
    SESSION_SINCE = 7
    PREFERRED_REPLICA_SINCE = 11
    FLEXIBLE_SINCE = 12
    TOPIC_ID_SINCE = 13
    FETCH_VERSION_MAX = 18
    # And the request.
    LEADER_EPOCH_SINCE = 9
    RACK_SINCE = 11
    REPLICA_ID_UNTIL = 14
    # Of more partitions, a fetch that waits looks only at those that have changed: not here.
    PARTITIONS_MAX = 64
    # All of an answer but topics and partitions, all of a topic but its name, all of a partition
    # but its records: in the versions where that is most.
    FRAME_BYTES_MAX = 32
    TOPIC_BYTES_MAX = 32
    PARTITION_BYTES_MAX = 56
    # The front of a batch's header: base offset, length, leader epoch, magic, CRC, attributes, the
    # last offset's delta.
    BATCH_FRONT_BYTES = 27
    BATCH_LENGTH = 8
    BATCH_LEADER_EPOCH = 12
    BATCH_LAST_OFFSET_DELTA = 23

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
                    partition.name_topic(version >= TOPIC_ID_SINCE, name_size)
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


# --------------------------------------------------------------------------------------- finding

@cython.final
cdef class ReadPlaces:
    def __cinit__(self):
        self.clear()

    def clear(self):
        cdef int number
        self.segments = [None] * PLACES_KEPT
        for number in range(PLACES_KEPT):
            self.offsets[number] = -1

    cdef int find(self, int64_t offset) noexcept:
        cdef int number = <int>(<uint64_t>offset % PLACES_KEPT)
        return number if self.offsets[number] == offset else -1

    cdef int note(self, int64_t offset, segment, int64_t position, int64_t size) except -1:
        cdef int number = <int>(<uint64_t>offset % PLACES_KEPT)
        self.offsets[number] = offset
        self.positions[number] = position
        self.sizes[number] = size
        self.segments[number] = segment
        return 0


@cython.final
@cython.freelist(64)
cdef class PlainRead:
    pass


@cython.final
cdef class PlainReads:
    pass


def find_plain(dict leaders not None, list wanted not None, bint is_stable, int64_t bytes_max):
    cdef PlainReads found = PlainReads.__new__(PlainReads)
    cdef PlainRead read
    cdef FetchedPartition each
    found.reads = []
    for each in wanted:
        replica = leaders.get(each.key)
        if replica is None:
            return None
        read = find_one(replica, each, is_stable, max(0, bytes_max - found.size), not found.size)
        if read is None:
            return None
        found.reads.append(read)
        if read.length:
            found.size += read.length
            # It may stop where a file ends, and there may be more behind it.
            found.is_urgent = found.is_urgent or not read.is_in_last_segment
        elif found.left_out is None and found.size and each.fetch_offset < read.end_offset:
            found.left_out = each
    return found if found.reads else None


cdef PlainRead find_one(
    replica, FetchedPartition wanted, bint is_stable, int64_t bytes_max, bint is_whole
):
    """Return what a partition has for a reader; None where Python has to look."""
    cdef PlainRead read
    cdef int64_t offset = wanted.fetch_offset
    cdef int64_t epoch = replica.leader_epoch
    log = replica.log
    if wanted.leader_epoch >= 0 and wanted.leader_epoch != epoch:
        return None
    if wanted.last_fetched_epoch >= 0 and wanted.last_fetched_epoch != epoch:
        return None
    if not wanted.resolved_name:
        wanted.resolved_name = replica.partition[0]
    end = log.end
    read = PlainRead.__new__(PlainRead)
    read.wanted = wanted
    read.replica = replica
    read.places = log.places
    if read.places is None:
        read.places = log.places = ReadPlaces()
    read.log_start = end.log_start
    read.high_watermark = read.stable_offset = read.end_offset = end.high_watermark
    if not read.log_start <= offset <= read.high_watermark:
        return None
    if end.producers.unstable:
        unstable = end.producers.first_unstable
        if <int64_t>unstable.first_offset < read.high_watermark:
            if is_stable:
                return None
            read.stable_offset = max(<int64_t>unstable.first_offset, read.log_start)
    if offset < read.high_watermark:
        if not locate(read, end, min(bytes_max, wanted.max_bytes), is_whole, is_stable):
            return None
    return read


cdef bint locate(
    PlainRead read, end, int64_t bytes_max, bint is_whole, bint is_stable
) except -1:
    """Find the bytes of a read, which may be none; say whether Python need not look."""
    cdef ReadPlaces places = read.places
    cdef int64_t offset = read.wanted.fetch_offset
    cdef int64_t size = 0, stop
    cdef int number = places.find(offset)
    cdef list segments = end.segments
    bound = end.high_place
    if bound is None:
        return False
    if number >= 0:
        read.segment = places.segments[number]
        read.position = places.positions[number]
        size = places.sizes[number]
    else:
        read.segment = segment_of(segments, offset)
        if read.segment is None:
            return False
        place = read.segment.find(offset)
        if place is None:
            return False
        read.position, size = place[0], place[1]
    read.is_in_last_segment = read.segment is segments[len(segments) - 1]
    if read.segment.base_offset == bound.segment_base_offset:
        stop = bound.position
    else:
        stop = read.segment.size
        read.end_offset = -1
    if is_stable and (read.end_offset < 0 or read.segment.aborted.count):
        return False
    read.length = stop - read.position
    if read.length <= 0:
        return False
    if read.length > bytes_max:
        read.end_offset = -1
        if not size:
            size = read.segment.header_at(read.position).size
        if size > bytes_max and not is_whole:
            read.length = 0
            read.end_offset = read.high_watermark
        else:
            read.length = min(read.length, max(bytes_max, size))
    if number < 0:
        places.note(offset, read.segment, read.position, size)
    return True


cdef object segment_of(list segments, int64_t offset):
    cdef Py_ssize_t number
    # From the end: readers are there, as a rule, and a log has few segments.
    for number in range(len(segments) - 1, -1, -1):
        if segments[number].base_offset <= offset:
            return segments[number]
    return None


cdef int note_ends(PlainRead read, const uint8_t* data, int64_t available) except -1:
    """Remember where the first batch begins that a reader has not got whole."""
    cdef ReadPlaces places = read.places
    cdef int64_t position = 0, size, offset = -1
    while position + BATCH_FRONT_BYTES <= available:
        size = <int64_t><int32_t>load_be32(data + position + BATCH_LENGTH) + BATCH_LEADER_EPOCH
        if size < BATCH_FRONT_BYTES:
            return 0
        if position + size > available:
            if offset >= 0:
                places.note(offset, read.segment, read.position + position, size)
            return 0
        offset = <int64_t>load_be64(data + position)
        offset += <int32_t>load_be32(data + position + BATCH_LAST_OFFSET_DELTA) + 1
        position += size
    if offset >= 0 and offset < read.high_watermark and read.position + position < read.segment.size:
        places.note(offset, read.segment, read.position + position, 0)
    return 0


# ------------------------------------------------------------------------------------- answering

def answer_plain(
    PlainReads found not None,
    FetchSession session,
    int version,
    int32_t correlation_id,
    bint is_stable,
    int64_t region_bytes_min,
):
    cdef PlainRead read
    cdef list contents = []
    if region_bytes_min < 0:
        region_bytes_min = INT64_MAX
    for read in found.reads:
        if read.length:
            contents.append(content_of(read))
    response = encode_plain(
        version,
        correlation_id,
        0 if session is None else session.id,
        found.reads,
        contents,
        session is not None,
        is_stable,
        region_bytes_min,
    )
    if response is None:
        return None
    found.memory_bytes = found.size
    if isinstance(response, list):
        for piece in <list>response:
            if isinstance(piece, FileRegion):
                found.memory_bytes -= (<FileRegion>piece).length
    for read in found.reads:
        traffic = read.replica.traffic
        traffic.fetch_requests += 1
        traffic.bytes_out += read.length
        if session is not None:
            read.wanted.high_watermark = read.high_watermark
            read.wanted.log_start = read.log_start
            if read.length and len(session.wanted) > 1:
                session.serve_last(read.wanted)
    return response


@cython.final
cdef class SentBytes:
    cdef object broker
    cdef int64_t count

    def __init__(self, broker, int64_t count):
        self.broker = broker
        self.count = count
        broker.fetch_bytes_out += count

    def __call__(self):
        self.broker.fetch_bytes_out -= self.count


cdef object content_of(PlainRead read):
    """Return the region of a file that a read is, or its bytes where a disk has no files."""
    disk = read.segment.disk
    path = read.segment.path
    files = disk.files
    if files is None:
        return disk.read(path, read.position, read.length)
    return FileRegion(files.get(path), read.position, read.length)


cdef int find_news(list reads, bint is_incremental) except -1:
    """Mark what the client was not told before; without a session it was told nothing."""
    cdef PlainRead read
    for read in reads:
        read.is_news = (
            not is_incremental
            or read.length > 0
            or read.high_watermark != read.wanted.high_watermark
            or read.log_start != read.wanted.log_start
        )
    return 0


cdef inline uint8_t* put16(uint8_t* at, int16_t number) noexcept:
    store_be16(at, <uint16_t>number)
    return at + 2


cdef inline uint8_t* put32(uint8_t* at, int32_t number) noexcept:
    store_be32(at, <uint32_t>number)
    return at + 4


cdef inline uint8_t* put64(uint8_t* at, int64_t number) noexcept:
    store_be64(at, <uint64_t>number)
    return at + 8


cdef inline uint8_t* put_length(uint8_t* at, int32_t length, bint flexible) noexcept:
    if flexible:
        return at + store_uvarint32(at, <uint32_t>(length + 1))
    return put32(at, length)


cdef inline uint8_t* put_no_tags(uint8_t* at, bint flexible) noexcept:
    if flexible:
        at[0] = 0
        at += 1
    return at


cdef dict by_topic(list reads):
    """Return the news of each topic, in the order in which the topics came."""
    cdef PlainRead read
    cdef dict topics = {}
    for read in reads:
        if read.is_news:
            topics.setdefault(read.wanted.topic or read.wanted.topic_id, []).append(read)
    return topics


cdef uint8_t* put_partition(
    uint8_t* at, PlainRead read, int version, bint is_stable, bint flexible
) noexcept:
    """Write a partition up to its records."""
    at = put16(put32(at, read.wanted.index), 0)
    at = put64(put64(at, read.high_watermark), read.stable_offset)
    if version >= LOG_START_SINCE:
        at = put64(at, read.log_start)
    at = put_length(at, 0 if is_stable else -1, flexible)
    if version >= PREFERRED_REPLICA_SINCE:
        at = put32(at, -1)
    return put_length(at, <int32_t>read.length, flexible)


@cython.final
cdef class ResponseWriter:
    """The bytes of a response, cut where regions of files go in between."""
    cdef uint8_t* at
    cdef uint8_t* start  # of what follows the last region
    cdef uint8_t* first
    cdef bytes buffer
    cdef list pieces
    cdef int64_t referred

    cdef int begin(self, Py_ssize_t size) except -1:
        self.buffer = PyBytes_FromStringAndSize(NULL, size)
        self.first = self.start = self.at = <uint8_t*>PyBytes_AS_STRING(self.buffer)
        return 0

    cdef int refer(self, FileRegion region) except -1:
        if self.pieces is None:
            self.pieces = []
        self.pieces.append((self.start - self.first, self.at - self.first))
        self.pieces.append(region)
        self.start = self.at
        self.referred += region.length
        return 0

    cdef object end(self):
        cdef Py_ssize_t size = self.at - self.first
        cdef list pieces
        store_be32(self.first, <uint32_t>(size - 4 + self.referred))
        if self.pieces is None:
            return self.buffer[:size] if size < len(self.buffer) else self.buffer
        pieces = []
        for piece in self.pieces:
            if isinstance(piece, tuple):
                pieces.append(self.buffer[piece[0] : piece[1]])
            else:
                pieces.append(piece)
        if self.at > self.start:
            pieces.append(self.buffer[self.start - self.first : size])
        return pieces


def encode_plain(
    int version,
    int32_t correlation_id,
    int32_t session_id,
    list reads not None,
    list contents not None,
    bint is_incremental,
    bint is_stable,
    int64_t region_bytes_min,
):
    cdef ResponseWriter writer = ResponseWriter.__new__(ResponseWriter)
    cdef bint flexible = version >= FLEXIBLE_SINCE
    cdef dict topics
    cdef dict by_read = {}
    cdef list rows
    cdef PlainRead read
    cdef Py_ssize_t size = FRAME_BYTES_MAX, text_size
    cdef int64_t length
    cdef const char* text
    cdef uint8_t* at
    cdef object content
    if not FETCH_VERSION_MIN <= version <= FETCH_VERSION_MAX:
        raise ValueError(f"Fetch has no version {version}")
    find_news(reads, is_incremental)
    topics = by_topic(reads)
    for read in reads:
        if read.length:
            content = by_read[read] = contents[len(by_read)]
            if not (isinstance(content, FileRegion) and read.length >= region_bytes_min):
                size += read.length
    for topic, rows in topics.items():
        size += TOPIC_BYTES_MAX + PARTITION_BYTES_MAX * len(rows)
        if version < TOPIC_ID_SINCE:
            PyUnicode_AsUTF8AndSize(topic, &text_size)
            size += text_size
    writer.begin(size)
    at = put_no_tags(put32(writer.at + 4, correlation_id), flexible)
    at = put32(at, 0)  # not throttled
    if version >= SESSION_SINCE:
        at = put32(put16(at, 0), session_id)
    at = put_length(at, <int32_t>len(topics), flexible)
    for topic, rows in topics.items():
        if version >= TOPIC_ID_SINCE:
            memcpy(at, PyBytes_AS_STRING(topic), UUID_BYTES)
            at += UUID_BYTES
        else:
            text = PyUnicode_AsUTF8AndSize(topic, &text_size)
            at = (
                at + store_uvarint32(at, <uint32_t>(text_size + 1))
                if flexible
                else put16(at, <int16_t>text_size)
            )
            memcpy(at, text, text_size)
            at += text_size
        at = put_length(at, <int32_t>len(rows), flexible)
        for read in rows:
            at = put_partition(at, read, version, is_stable, flexible)
            if read.length:
                content = by_read[read]
                writer.at = at
                if not put_records(writer, read, content, region_bytes_min):
                    return None
                at = writer.at
            at = put_no_tags(at, flexible)
        at = put_no_tags(at, flexible)
    writer.at = put_no_tags(at, flexible)
    if writer.at - writer.first + writer.referred > INT32_MAX:
        return None
    return writer.end()


cdef bint put_records(
    ResponseWriter writer, PlainRead read, content, int64_t region_bytes_min
) except -1:
    """Write or refer to the records of a read; False if they are not in memory."""
    cdef FileRegion region
    cdef Py_buffer view
    if isinstance(content, FileRegion):
        region = content
        if read.length >= region_bytes_min:
            if not region_is_resident(region):
                return False
            writer.refer(region)
            if read.end_offset >= 0:
                read.places.note(
                    read.end_offset, read.segment, read.position + read.length, 0
                )
            return True
        if not read_at_hand(region, writer.at):
            return False
    else:
        PyObject_GetBuffer(content, &view, PyBUF_SIMPLE)
        try:
            if view.len != read.length:
                return False
            memcpy(writer.at, view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
    note_ends(read, writer.at, read.length)
    if read.end_offset >= 0:
        read.places.note(
            read.end_offset, read.segment, read.position + read.length, 0
        )
    writer.at += read.length
    return True
