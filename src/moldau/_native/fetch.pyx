"""The fetch kernel: a fetch that finds nothing unusual, from its partitions to its response.

What is unusual is left to Python: errors, partitions that are not led here, readers beyond the high
watermark, diverging epochs, aborted transactions, and data that is not in memory.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from moldau._native.fetch_request cimport (
    FETCH_VERSION_MAX, FETCH_VERSION_MIN, FLEXIBLE_SINCE, LOG_START_SINCE, SESSION_SINCE, TOPIC_ID_SINCE,
    UUID_BYTES, FetchedPartition, FetchSession,
)
from moldau._native.files cimport FileRegion, read_at_hand, region_is_resident

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject **whole, Py_ssize_t size) except -1

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


def try_read(replica, int64_t offset, bint is_stable, int64_t bytes_max):
    cdef FetchedPartition wanted = FetchedPartition.__new__(FetchedPartition)
    cdef PlainRead read
    cdef const uint8_t[:] view
    wanted.fetch_offset = offset
    wanted.max_bytes = INT32_MAX
    wanted.leader_epoch = wanted.last_fetched_epoch = -1
    read = find_one(replica, wanted, is_stable, bytes_max, True)
    if read is None or not 0 < read.length <= COPIED_BYTES_MAX:
        return None
    content = content_of(read)
    if isinstance(content, FileRegion):
        data = PyBytes_FromStringAndSize(NULL, read.length)
        if not read_at_hand(content, <uint8_t*>PyBytes_AS_STRING(data)):
            return None
        content = data
    elif len(content) != read.length:
        return None
    view = content
    note_ends(read, &view[0], read.length)
    if read.end_offset >= 0:
        read.places.note(read.end_offset, read.segment, read.position + read.length, 0)
    return content


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
    """Do the same for records that stay in their file, from near their end on.

    The index has an entry there; if it has none at hand, or a wrong one, the reader's next offset
    is searched for as usual.
    """
    cdef uint8_t front[BATCH_FRONT_BYTES]
    cdef int64_t end = region.position + region.length, size, offset, last_offset
    cdef int looks
    cdef FileRegion header
    entry = read.segment.offsets.entry_at_hand(end - BATCH_FRONT_BYTES)
    if entry is None or entry[1] < region.position:
        return 0
    header = FileRegion(region.file, entry[1], BATCH_FRONT_BYTES)
    for looks in range(LOOKS_MAX):
        if header.position + BATCH_FRONT_BYTES > end or not read_at_hand(header, front):
            return 0
        size = <int64_t><int32_t>load_be32(front + BATCH_LENGTH) + BATCH_LEADER_EPOCH
        offset = <int64_t>load_be64(front)
        last_offset = offset + <int32_t>load_be32(front + BATCH_LAST_OFFSET_DELTA)
        if size < BATCH_FRONT_BYTES or (not looks and last_offset != entry[0]):
            return 0
        if header.position + size > end:
            read.places.note(offset, read.segment, header.position, size)
            return 0
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


include "fetch_response.pxi"
