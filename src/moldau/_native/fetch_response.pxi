# The response: its bytes around the records, which are read into it or stay in their files.

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

    cdef object take(self, Py_ssize_t size):
        """Return the buffer, cut where it stands: its records are not copied once more."""
        cdef PyObject *cut = <PyObject*>self.buffer
        Py_INCREF(self.buffer)
        self.buffer = None
        _PyBytes_Resize(&cut, size)
        whole = <object>cut
        Py_DECREF(whole)
        return whole

    cdef object end(self):
        cdef Py_ssize_t size = self.at - self.first
        cdef list pieces
        store_be32(self.first, <uint32_t>(size - 4 + self.referred))
        if self.pieces is None:
            return self.take(size)
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
