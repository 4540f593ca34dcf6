"""Produce requests, picked apart where they stand, and the answers to the plain ones."""

cdef enum:
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


# --------------------------------------------------------------------------------------- requests

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


# -------------------------------------------------------------------------------- plain requests

cdef bint find_plain(const uint8_t* data, const frame_head* head, plain_produce* found) except -1:
    """Read a request for one partition outside of transactions, as nearly all are.

    False if it is another, or its version has no batches; `ProtocolError` if it is malformed, but
    not each one that is: what cannot be appended goes through `parse_produce` next.
    """
    cdef Reader r
    cdef int64_t length
    cdef int version = head.api_version
    if head.api_key != 0 or not PRODUCE_TRANSACTIONAL_SINCE <= version <= PRODUCE_VERSION_MAX:
        return False
    r.start = data
    r.at = data + head.body
    r.end = data + head.end
    r.flexible = version >= PRODUCE_FLEXIBLE_SINCE
    length = read_uvarint(&r, "transactional id") - 1 if r.flexible else read_int16(&r, "transactional id")
    if length >= 0:
        return False
    found.acks = read_int16(&r, "acks")
    found.timeout_ms = read_int32(&r, "timeout")
    if not -1 <= found.acks <= 1 or read_count(&r, "topics", 1) != 1:
        return False
    length = UUID_BYTES
    if version < PRODUCE_TOPIC_ID_SINCE:
        length = read_uvarint(&r, "topic") - 1 if r.flexible else read_int16(&r, "topic")
    check_length(&r, "topic", length, STRING_BYTES_MAX, False)
    found.topic_start = r.at - data
    r.at += length
    found.topic_end = r.at - data
    if read_count(&r, "partitions", 1) != 1:
        return False
    found.partition = read_int32(&r, "partition")
    length = read_uvarint(&r, "records") - 1 if r.flexible else read_int32(&r, "records")
    if length <= 0:
        return False
    check_length(&r, "records", length, RECORDS_BYTES_MAX, True)
    found.records_start = r.at - data
    r.at += length
    found.records_end = r.at - data
    # The tags of the partition, the topic and the request.
    skip_tagged(&r)
    skip_tagged(&r)
    skip_tagged(&r)
    return r.at == r.end


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
    cdef const char* text
    cdef Py_ssize_t size = UUID_BYTES
    cdef ProducePartition partition
    if not 0 <= version <= PRODUCE_VERSION_MAX:
        raise ValueError(f"Produce has no version {version}")
    (partition,) = topic.partitions
    if version >= PRODUCE_TOPIC_ID_SINCE:
        if topic.topic_id is None:
            raise TypeError(f"{topic} has no topic id")
        text = topic.topic_id
    else:
        if topic.name is None:
            raise TypeError(f"{topic} has no name")
        text = PyUnicode_AsUTF8AndSize(topic.name, &size)
    return write_produced(
        version, correlation_id, text, size, partition.index, base_offset, append_time_ms, log_start
    )


cdef bytes write_produced(
    int version,
    int32_t correlation_id,
    const char* topic,
    Py_ssize_t topic_size,
    int32_t partition,
    int64_t base_offset,
    int64_t append_time_ms,
    int64_t log_start,
):
    cdef uint8_t kept[PRODUCED_BYTES_MAX + STRING_BYTES_MAX]
    cdef uint8_t* at = kept + 4
    cdef bint flexible = version >= PRODUCE_FLEXIBLE_SINCE
    at = write_no_tags(write_int32(at, correlation_id), flexible)
    at = write_count(at, 1, flexible)
    if version < PRODUCE_TOPIC_ID_SINCE:
        at = at + store_uvarint32(at, topic_size + 1) if flexible else write_int16(at, topic_size)
    memcpy(at, topic, topic_size)
    at = write_count(at + topic_size, 1, flexible)
    at = write_int16(write_int32(at, partition), 0)
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
