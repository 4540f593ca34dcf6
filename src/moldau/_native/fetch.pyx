"""The fetch kernel: a fetch that finds nothing unusual, from its partitions to its response.

What is unusual is left to Python: errors, partitions that are not led here, readers beyond the high
watermark, diverging epochs, aborted transactions, and data that is not in memory.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from moldau._native.fetch_request cimport (
    FETCH_VERSION_MAX, FETCH_VERSION_MIN, FLEXIBLE_SINCE, LOG_START_SINCE, SESSION_SINCE, TOPIC_ID_SINCE,
    UUID_BYTES, FetchedPartition, FetchSession,
)
from moldau._native.files cimport FileRegion, read_at_hand, region_is_resident

cdef extern from "wire.h":
    uint32_t load_be32(const uint8_t*)
    uint64_t load_be64(const uint8_t*)
    void store_be16(uint8_t*, uint16_t)
    void store_be32(uint8_t*, uint32_t)
    void store_be64(uint8_t*, uint64_t)
    int store_uvarint32(uint8_t*, uint32_t)

cdef enum:
    PREFERRED_REPLICA_SINCE = 11
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
    LOOKS_MAX = 16
    # Fresh memory of a larger size costs more than reading: buffers that are used again are better.
    COPIED_BYTES_MAX = 256 << 10


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


cdef int note_ends_in(PlainRead read, FileRegion region) except -1:
    """Do the same for records that stay in their file, if that takes few looks."""
    cdef uint8_t front[BATCH_FRONT_BYTES]
    cdef FileRegion header = FileRegion(region.file, region.position, BATCH_FRONT_BYTES)
    cdef int64_t end = region.position + region.length, size, offset = -1
    cdef int looks
    for looks in range(LOOKS_MAX):
        if header.position + BATCH_FRONT_BYTES > end or not read_at_hand(header, front):
            return 0
        size = <int64_t><int32_t>load_be32(front + BATCH_LENGTH) + BATCH_LEADER_EPOCH
        if size < BATCH_FRONT_BYTES:
            return 0
        if header.position + size > end:
            if offset >= 0:
                read.places.note(offset, read.segment, header.position, size)
            return 0
        offset = <int64_t>load_be64(front)
        offset += <int32_t>load_be32(front + BATCH_LAST_OFFSET_DELTA) + 1
        header.position += size
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
    if size > COPIED_BYTES_MAX:
        return None
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
            if read.end_offset < 0:
                note_ends_in(read, region)
            else:
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
