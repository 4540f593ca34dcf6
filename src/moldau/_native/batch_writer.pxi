# Part of records.pyx: building one batch, record by record.


cdef slice_ _slice(object data, Py_buffer *view) except *:
    """Open `data`, or None, for reading; the caller zeroes `view` before and releases it after."""
    cdef slice_ found
    if data is None:
        found.data = NULL
        found.size = -1
        return found
    PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
    found.data = <const uint8_t *>view.buf
    found.size = view.len
    return found


@cython.final
cdef class BatchWriter:
    def __init__(self, *, int64_t base_offset=0, base_timestamp=None):
        self.buffer = bytearray(4096)
        self.reset(base_offset=base_offset, base_timestamp=base_timestamp)

    def __dealloc__(self):
        buffer_free(&self.headers)

    def reset(self, *, int64_t base_offset=0, base_timestamp=None):
        self.size = BATCH_HEADER_SIZE
        self.record_count = 0
        self.base_offset = base_offset
        self.base_timestamp_is_set = base_timestamp is not None
        self.base_timestamp = -1 if base_timestamp is None else base_timestamp
        self.max_timestamp = -1
        self.last_offset_delta = -1

    def append(self, int64_t timestamp, key, value, headers=()):
        return self._append(self.last_offset_delta + 1, timestamp, key, value, headers)

    def append_at(self, int64_t offset, int64_t timestamp, key, value, headers=()):
        return self._append(wrapping_subtract(offset, self.base_offset), timestamp, key, value, headers)

    cdef Py_ssize_t _append(
        self, int64_t offset_delta, int64_t timestamp, object key, object value, object headers
    ) except -1:
        cdef Py_buffer key_view, value_view
        memset(&key_view, 0, sizeof(Py_buffer))
        memset(&value_view, 0, sizeof(Py_buffer))
        try:
            return self.put(
                offset_delta, timestamp, _slice(key, &key_view), _slice(value, &value_view), headers
            )
        finally:
            PyBuffer_Release(&key_view)
            PyBuffer_Release(&value_view)

    cdef Py_ssize_t put(
        self, int64_t offset_delta, int64_t timestamp, slice_ key, slice_ value, object headers
    ) except -1:
        """Add a record; return its size."""
        cdef record_fields fields
        cdef Py_ssize_t size
        if not self.last_offset_delta < offset_delta <= INT32_MAX:
            raise ProtocolError(f"offset delta {offset_delta} does not follow {self.last_offset_delta}")
        if not self.base_timestamp_is_set:
            self.base_timestamp = timestamp
        fields.offset_delta = offset_delta
        fields.timestamp_delta = wrapping_subtract(timestamp, self.base_timestamp)
        fields.key = key
        fields.value = value
        fields.header_count = self._gather(headers)
        fields.headers_size = self.headers.size
        size = self._write(&fields)
        self.base_timestamp_is_set = True
        self.last_offset_delta = offset_delta
        self.record_count += 1
        self.size += size
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return size

    cdef Py_ssize_t _gather(self, object headers) except -1:
        """Write `headers` to the buffer beside; return their number."""
        cdef Py_buffer view
        cdef slice_ key, value
        cdef Py_ssize_t count = 0, size
        cdef uint8_t *p
        self.headers.size = 0
        if type(headers) is tuple and not headers:
            return 0
        for name, content in headers:
            key.data = <const uint8_t *>PyUnicode_AsUTF8AndSize(name, &size)
            key.size = size
            memset(&view, 0, sizeof(Py_buffer))
            try:
                value = _slice(content, &view)
                if not buffer_reserve(&self.headers, slice_size(key) + slice_size(value)):
                    raise MemoryError
                p = slice_put(self.headers.data + self.headers.size, key)
                self.headers.size = slice_put(p, value) - self.headers.data
            finally:
                PyBuffer_Release(&view)
            count += 1
        return count

    cdef Py_ssize_t _write(self, const record_fields *fields) except -1:
        """Write a record behind the last; return its size."""
        cdef int64_t body_size = record_body_size(fields)
        cdef int64_t end = self.size + varint_size(body_size) + body_size
        cdef uint8_t *p
        if end > INT32_MAX:
            raise ProtocolError("a batch holds at most 2 GiB")
        if end > len(self.buffer):
            PyByteArray_Resize(self.buffer, max(end, 2 * len(self.buffer)))
        p = <uint8_t *>PyByteArray_AS_STRING(self.buffer) + self.size
        p = record_put(p, fields, body_size)
        if fields.headers_size:
            memcpy(p, self.headers.data, fields.headers_size)
        return end - self.size

    def finish(
        self,
        *,
        int codec=0,
        compress=None,
        int32_t leader_epoch=-1,
        int64_t producer_id=-1,
        int16_t producer_epoch=-1,
        int32_t base_sequence=-1,
        int16_t attributes=0,
        max_timestamp=None,
        last_offset=None,
    ):
        cdef batch_header header
        cdef int64_t last_offset_delta = self.last_offset_delta
        if last_offset is not None:
            last_offset_delta = wrapping_subtract(last_offset, self.base_offset)
        if not (0 <= last_offset_delta <= INT32_MAX and self.last_offset_delta <= last_offset_delta):
            raise ProtocolError("the last offset does not follow the last record")
        if attributes & ATTRIBUTE_CODEC or not 0 <= codec <= ATTRIBUTE_CODEC:
            raise ValueError("the codec has an argument of its own, 0 to 7")
        if (codec == 0) != (compress is None):
            raise ValueError("a codec and what compresses with it go together")
        header.base_offset = self.base_offset
        header.leader_epoch = leader_epoch
        header.attributes = attributes | codec
        header.last_offset_delta = last_offset_delta
        header.base_timestamp = self.base_timestamp
        header.max_timestamp = self.max_timestamp if max_timestamp is None else max_timestamp
        header.producer_id = producer_id
        header.producer_epoch = producer_epoch
        header.base_sequence = base_sequence
        header.record_count = self.record_count
        records = memoryview(self.buffer)[BATCH_HEADER_SIZE:self.size]
        return assemble(&header, records if compress is None else compress(records))


cdef bytes assemble(batch_header *header, object payload):
    """Put a header in front of a payload."""
    cdef Py_buffer view
    cdef bytes batch
    cdef uint8_t *p
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        header.size = BATCH_HEADER_SIZE + view.len
        if header.size > INT32_MAX:
            raise ProtocolError("a batch holds at most 2 GiB")
        batch = PyBytes_FromStringAndSize(NULL, header.size)
        p = <uint8_t *>PyBytes_AS_STRING(batch)
        if view.len:
            memcpy(p + BATCH_HEADER_SIZE, view.buf, view.len)
        batch_write(p, header)
        return batch
    finally:
        PyBuffer_Release(&view)
