"""The request-frame kernel: split a receive buffer into requests, pick Produce requests apart and
answer the plain ones.

Nothing is copied: frames and the records inside a Produce request are positions in the buffer that
the caller owns. What a length or a count claims is compared with the bytes that are there before it
is believed.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from moldau.kernel.errors import ProtocolError

cdef extern from "wire.h":
    uint16_t load_be16(const uint8_t*)
    uint32_t load_be32(const uint8_t*)
    int load_uvarint32(const uint8_t*, const uint8_t*, uint32_t*)
    int UVARINT_TRUNCATED
    void store_be16(uint8_t*, uint16_t)
    void store_be32(uint8_t*, uint32_t)
    void store_be64(uint8_t*, uint64_t)
    int store_uvarint32(uint8_t*, uint32_t)

cdef enum:
    API_KEY_MAX = 255
    UNKNOWN = -1
    # The request header's fixed part: API key, version, correlation id.
    HEADER_BYTES_MIN = 8
    TAGGED_FIELDS_MAX = 64
    STRING_BYTES_MAX = 0x7fff
    RECORDS_BYTES_MAX = 0x7ffffffe
    CLIENT_ID_KEPT_BYTES_MAX = 64
    UUID_BYTES = 16
    # The versions that changed the layout of Produce.
    PRODUCE_TRANSACTIONAL_SINCE = 3
    PRODUCE_FLEXIBLE_SINCE = 9
    PRODUCE_TOPIC_ID_SINCE = 13
    PRODUCE_VERSION_MAX = 13
    # Those that changed its answer.
    PRODUCED_THROTTLED_SINCE = 1
    PRODUCED_APPEND_TIME_SINCE = 2
    PRODUCED_LOG_START_SINCE = 5
    PRODUCED_RECORD_ERRORS_SINCE = 8
    # All of an answer to one partition but the topic's name, in the version where that is most.
    PRODUCED_BYTES_MAX = 80


# --------------------------------------------------------------------------------------- reading

cdef struct Reader:
    const uint8_t* start
    const uint8_t* at
    const uint8_t* end
    bint flexible


cdef int malformed(Reader* r, str field, str what) except -1:
    raise ProtocolError(f"{field} at byte {r.at - r.start}: {what}")


cdef int too_short(Reader* r, str field, int64_t size) except -1:
    return malformed(r, field, f"{size} bytes needed, {r.end - r.at} left")


cdef inline int need(Reader* r, str field, int64_t size) except -1:
    if r.end - r.at < size:
        too_short(r, field, size)
    return 0


cdef inline int64_t read_int16(Reader* r, str field) except? -1:
    need(r, field, 2)
    r.at += 2
    return <int16_t>load_be16(r.at - 2)


cdef inline int64_t read_int32(Reader* r, str field) except? -1:
    need(r, field, 4)
    r.at += 4
    return <int32_t>load_be32(r.at - 4)


cdef inline int64_t read_uvarint(Reader* r, str field) except -1:
    cdef uint32_t value = 0
    cdef int size = load_uvarint32(r.at, r.end, &value)
    if size < 0:
        malformed(r, field, "varint cut short" if size == UVARINT_TRUNCATED else "varint too long")
    r.at += size
    return value


cdef int skip_tagged(Reader* r) except -1:
    cdef int64_t count, size
    if not r.flexible:
        return 0
    count = read_uvarint(r, "tagged fields")
    if count > TAGGED_FIELDS_MAX:
        malformed(r, "tagged fields", f"{count} are more than {TAGGED_FIELDS_MAX}")
    while count > 0:
        count -= 1
        read_uvarint(r, "tagged fields")
        size = read_uvarint(r, "tagged fields")
        need(r, "tagged fields", size)
        r.at += size
    return 0


cdef int check_length(Reader* r, str field, int64_t length, int64_t length_max, bint nullable) except -1:
    """Refuse a length that the bytes left do not have; -1 is null."""
    if length < -1 or length > length_max:
        malformed(r, field, f"length {length}")
    if length < 0 and not nullable:
        malformed(r, field, "null where none may be")
    return need(r, field, length)


cdef str read_text(Reader* r, str field, int64_t length, bint nullable):
    check_length(r, field, length, STRING_BYTES_MAX, nullable)
    if length < 0:
        return None
    try:
        text = PyUnicode_DecodeUTF8(<const char*>r.at, length, NULL)
    except UnicodeDecodeError:
        malformed(r, field, "not UTF-8")
    r.at += length
    return text


cdef str read_string(Reader* r, str field, bint nullable):
    cdef int64_t length
    length = read_uvarint(r, field) - 1 if r.flexible else read_int16(r, field)
    return read_text(r, field, length, nullable)


cdef int64_t read_count(Reader* r, str field, int element_bytes_min) except -1:
    cdef int64_t count
    count = read_uvarint(r, field) - 1 if r.flexible else read_int32(r, field)
    if count < 0:
        malformed(r, field, "null where none may be")
    if count > (r.end - r.at) // element_bytes_min:
        malformed(r, field, f"{count} elements cannot be in the {r.end - r.at} bytes left")
    return count


# ---------------------------------------------------------------------------------------- frames

@cython.final
cdef class Frame:
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t body
    cdef readonly Py_ssize_t end
    cdef readonly int api_key
    cdef readonly int api_version
    cdef readonly int correlation_id
    cdef readonly bint known
    cdef readonly str client_id

    def __repr__(self):
        return (
            f"<Frame {self.start}:{self.end} api {self.api_key} v{self.api_version}"
            f" correlation {self.correlation_id}>"
        )


@cython.final
cdef class FrameSplitter:
    # The first flexible version of each API; UNKNOWN where there is no such API.
    cdef int32_t flexible_since[API_KEY_MAX + 1]
    # Clients send the same id again and again: the last one is kept as an object.
    cdef str client_id
    cdef uint8_t client_id_bytes[CLIENT_ID_KEPT_BYTES_MAX]
    cdef Py_ssize_t client_id_size

    def __init__(self, flexible_since):
        cdef int key
        for key in range(API_KEY_MAX + 1):
            self.flexible_since[key] = UNKNOWN
        for api_key, version in flexible_since.items():
            if not 0 <= api_key <= API_KEY_MAX or version < 0:
                raise ValueError(f"API {api_key} cannot be flexible since version {version}")
            self.flexible_since[<int>api_key] = version
        self.client_id_size = -1

    def split(
        self,
        data,
        Py_ssize_t start,
        Py_ssize_t end,
        *,
        int64_t frame_bytes_max,
        Py_ssize_t frames_max=256,
    ):
        cdef Py_buffer view
        cdef list frames = []
        cdef Py_ssize_t size
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start <= end <= view.len:
                raise IndexError(f"{start}:{end} is not within the {view.len} bytes of the buffer")
            while end - start >= 4 and len(frames) < frames_max:
                size = <int32_t>load_be32(<const uint8_t*>view.buf + start)
                if size < HEADER_BYTES_MIN or size > frame_bytes_max:
                    raise ProtocolError(
                        f"a frame of {size} bytes: {HEADER_BYTES_MIN} to {frame_bytes_max} may be"
                    )
                if size > end - start - 4:
                    break
                frames.append(self.read_frame(<const uint8_t*>view.buf, start + 4, size))
                start += 4 + size
        except ProtocolError:
            # What came before is answered first; the next call begins here and fails.
            if not frames:
                raise
        finally:
            PyBuffer_Release(&view)
        return frames, start

    cdef Frame read_frame(self, const uint8_t* data, Py_ssize_t start, Py_ssize_t size):
        cdef Frame frame = Frame.__new__(Frame)
        cdef Reader r
        cdef int32_t flexible_since
        r.start = data + start
        r.end = r.start + size
        r.at = r.start + HEADER_BYTES_MIN
        frame.start = start
        frame.end = start + size
        frame.api_key = <int16_t>load_be16(r.start)
        frame.api_version = <int16_t>load_be16(r.start + 2)
        frame.correlation_id = <int32_t>load_be32(r.start + 4)
        if 0 <= frame.api_key <= API_KEY_MAX:
            flexible_since = self.flexible_since[frame.api_key]
            if flexible_since != UNKNOWN:
                frame.known = True
                # Header v2 is v1 with tagged fields; its client id keeps the 16-bit length.
                frame.client_id = self.read_client_id(&r)
                r.flexible = frame.api_version >= flexible_since
                skip_tagged(&r)
        frame.body = r.at - data
        return frame

    cdef str read_client_id(self, Reader* r):
        cdef Py_ssize_t length = read_int16(r, "client id")
        cdef const uint8_t* text = r.at
        if length >= 0 and length == self.client_id_size and length <= r.end - r.at:
            if memcmp(r.at, self.client_id_bytes, length) == 0:
                r.at += length
                return self.client_id
        client_id = read_text(r, "client id", length, True)
        if 0 <= length <= CLIENT_ID_KEPT_BYTES_MAX:
            memcpy(self.client_id_bytes, text, length)
            self.client_id_size = length
            self.client_id = client_id
        return client_id


# --------------------------------------------------------------------------------------- Produce

@cython.final
cdef class ProducePartition:
    cdef readonly int index
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end

    @property
    def is_null(self):
        return self.start < 0

    def __repr__(self):
        return f"<ProducePartition {self.index} {self.start}:{self.end}>"


@cython.final
cdef class ProduceTopic:
    cdef readonly str name
    cdef readonly bytes topic_id
    cdef readonly list partitions

    def __repr__(self):
        return f"<ProduceTopic {self.name or self.topic_id.hex()} {self.partitions}>"


@cython.final
cdef class Produce:
    cdef readonly str transactional_id
    cdef readonly int acks
    cdef readonly int timeout_ms
    cdef readonly list topics

    def __repr__(self):
        return f"<Produce acks={self.acks} {self.topics}>"


def parse_produce(data, Frame frame not None):
    cdef Py_buffer view
    cdef Reader r
    cdef int version = frame.api_version
    if frame.api_key != 0 or not 0 <= version <= PRODUCE_VERSION_MAX:
        raise ProtocolError(f"API {frame.api_key} v{version} is not a Produce request that we know")
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= frame.body <= frame.end <= view.len:
            raise IndexError(f"{frame} is not within the {view.len} bytes of the buffer")
        r.start = <const uint8_t*>view.buf
        r.at = r.start + frame.body
        r.end = r.start + frame.end
        r.flexible = version >= PRODUCE_FLEXIBLE_SINCE
        return read_produce(&r, version)
    finally:
        PyBuffer_Release(&view)


cdef Produce read_produce(Reader* r, int version):
    cdef Produce produce = Produce.__new__(Produce)
    cdef bint by_id = version >= PRODUCE_TOPIC_ID_SINCE
    cdef int64_t count
    if version >= PRODUCE_TRANSACTIONAL_SINCE:
        produce.transactional_id = read_string(r, "transactional id", True)
    produce.acks = read_int16(r, "acks")
    produce.timeout_ms = read_int32(r, "timeout")
    produce.topics = []
    # A topic without a name and without partitions is two lengths, and the tags' count if flexible.
    count = read_count(r, "topics", UUID_BYTES + 2 if by_id else 3 if r.flexible else 6)
    while count > 0:
        count -= 1
        produce.topics.append(read_topic(r, by_id))
    skip_tagged(r)
    if r.at != r.end:
        malformed(r, "the end", f"{r.end - r.at} bytes are left over")
    return produce


cdef ProduceTopic read_topic(Reader* r, bint by_id):
    cdef ProduceTopic topic = ProduceTopic.__new__(ProduceTopic)
    cdef int64_t count
    if by_id:
        need(r, "topic id", UUID_BYTES)
        topic.topic_id = PyBytes_FromStringAndSize(<const char*>r.at, UUID_BYTES)
        r.at += UUID_BYTES
    else:
        topic.name = read_string(r, "topic", False)
    topic.partitions = []
    count = read_count(r, "partitions", 6 if r.flexible else 8)
    while count > 0:
        count -= 1
        topic.partitions.append(read_partition(r))
    skip_tagged(r)
    return topic


cdef ProducePartition read_partition(Reader* r):
    cdef ProducePartition partition = ProducePartition.__new__(ProducePartition)
    cdef int64_t length
    partition.index = read_int32(r, "partition")
    length = read_uvarint(r, "records") - 1 if r.flexible else read_int32(r, "records")
    check_length(r, "records", length, RECORDS_BYTES_MAX, True)
    if length < 0:
        partition.start = partition.end = -1
    else:
        partition.start = r.at - r.start
        r.at += length
        partition.end = r.at - r.start
    skip_tagged(r)
    return partition


# ------------------------------------------------------------------------- the answer to Produce

cdef inline uint8_t* write_int16(uint8_t* at, int16_t number) noexcept:
    store_be16(at, <uint16_t>number)
    return at + 2


cdef inline uint8_t* write_int32(uint8_t* at, int32_t number) noexcept:
    store_be32(at, <uint32_t>number)
    return at + 4


cdef inline uint8_t* write_int64(uint8_t* at, int64_t number) noexcept:
    store_be64(at, <uint64_t>number)
    return at + 8


cdef inline uint8_t* write_count(uint8_t* at, int32_t count, bint flexible) noexcept:
    if flexible:
        return at + store_uvarint32(at, count + 1)
    return write_int32(at, count)


cdef inline uint8_t* write_no_tags(uint8_t* at, bint flexible) noexcept:
    if flexible:
        at[0] = 0
        at += 1
    return at


def encode_produced(
    int version,
    int32_t correlation_id,
    ProduceTopic topic not None,
    int64_t base_offset,
    int64_t append_time_ms,
    int64_t log_start,
):
    cdef uint8_t kept[PRODUCED_BYTES_MAX + STRING_BYTES_MAX]
    cdef uint8_t* at = kept + 4
    cdef bint flexible = version >= PRODUCE_FLEXIBLE_SINCE
    cdef const char* text
    cdef Py_ssize_t size = UUID_BYTES
    cdef ProducePartition partition
    if not 0 <= version <= PRODUCE_VERSION_MAX:
        raise ValueError(f"Produce has no version {version}")
    (partition,) = topic.partitions
    at = write_no_tags(write_int32(at, correlation_id), flexible)
    at = write_count(at, 1, flexible)
    if version >= PRODUCE_TOPIC_ID_SINCE:
        if topic.topic_id is None:
            raise TypeError(f"{topic} has no topic id")
        text = topic.topic_id
    else:
        if topic.name is None:
            raise TypeError(f"{topic} has no name")
        text = PyUnicode_AsUTF8AndSize(topic.name, &size)
        at = at + store_uvarint32(at, size + 1) if flexible else write_int16(at, size)
    memcpy(at, text, size)
    at = write_count(at + size, 1, flexible)
    at = write_int16(write_int32(at, partition.index), 0)
    at = write_int64(at, base_offset)
    if version >= PRODUCED_APPEND_TIME_SINCE:
        at = write_int64(at, append_time_ms)
    if version >= PRODUCED_LOG_START_SINCE:
        at = write_int64(at, log_start)
    if version >= PRODUCED_RECORD_ERRORS_SINCE:
        at = write_count(at, 0, flexible)
        # No message for the partition.
        at = write_no_tags(at, True) if flexible else write_int16(at, -1)
    at = write_no_tags(write_no_tags(at, flexible), flexible)
    if version >= PRODUCED_THROTTLED_SINCE:
        at = write_int32(at, 0)
    at = write_no_tags(at, flexible)
    write_int32(kept, at - kept - 4)
    return PyBytes_FromStringAndSize(<const char*>kept, at - kept)
