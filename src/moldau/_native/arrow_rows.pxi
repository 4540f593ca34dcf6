# Part of columns.pyx: rows of Arrow data on their way to partitions.


cdef _open_capsules(ArrowArrayStream *stream):
    """Return the next record batch of a stream as its two capsules, None at the end."""
    cdef ArrowSchema *schema = <ArrowSchema *>calloc(1, sizeof(ArrowSchema))
    cdef ArrowArray *array = <ArrowArray *>calloc(1, sizeof(ArrowArray))
    cdef const char *message
    if schema is NULL or array is NULL:
        free(schema)
        free(array)
        raise MemoryError
    schema_capsule = PyCapsule_New(schema, "arrow_schema", _free_schema)
    array_capsule = PyCapsule_New(array, "arrow_array", _free_array)
    if stream.get_schema(stream, schema) or stream.get_next(stream, array):
        message = stream.get_last_error(stream)
        raise ProtocolError(f"the Arrow stream broke: {message.decode() if message else 'no reason'}")
    return None if array.release is NULL else (schema_capsule, array_capsule)


def open_arrow(data):
    """Yield the record batches of anything with Arrow's PyCapsule interface."""
    if not hasattr(data, "__arrow_c_stream__"):
        if not hasattr(data, "__arrow_c_array__"):
            raise TypeError(f"Arrow data is wanted, such as a pyarrow table, not {type(data).__name__}")
        yield ArrowRows(data.__arrow_c_array__())
        return
    capsule = data.__arrow_c_stream__()
    while True:
        capsules = _open_capsules(
            <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
        )
        if capsules is None:
            return
        yield ArrowRows(capsules)


@cython.final
cdef class ArrowRows:
    cdef tuple capsules  # they own what is read
    cdef record_input records
    cdef const ArrowArray *partitions
    cdef bint partitions_are_wide
    cdef int64_t start

    def __init__(self, tuple capsules not None):
        cdef const ArrowSchema *schema
        cdef const ArrowArray *array
        cdef int64_t k
        self.capsules = capsules
        schema = <ArrowSchema *>PyCapsule_GetPointer(capsules[0], "arrow_schema")
        array = <ArrowArray *>PyCapsule_GetPointer(capsules[1], "arrow_array")
        self.records.timestamp.multiplier = self.records.timestamp.divisor = 1
        _open(&self.records, schema, array)
        for k in range(schema.n_children):
            if strcmp(schema.children[k].name, "partition") == 0:
                self.partitions = array.children[k]
                self.partitions_are_wide = schema.children[k].format[0] == b"l"
                _require(schema.children[k], self.partitions, "i l", 2, array.offset + array.length)
        self.start = array.offset

    def __len__(self):
        return self.records.row_count

    cdef int64_t _partition(self, int64_t row, int32_t partition_count) except -2:
        """Return where a row wants to go, -1 if it does not say."""
        cdef slice_ key
        cdef int64_t place = self.start + row, wanted
        if self.partitions is not NULL:
            place += self.partitions.offset
            if input_is_valid(_validity(self.partitions), place):
                if self.partitions_are_wide:
                    wanted = (<const int64_t *>self.partitions.buffers[1])[place]
                else:
                    wanted = (<const int32_t *>self.partitions.buffers[1])[place]
                if not 0 <= wanted < partition_count:
                    raise ValueError(
                        f"row {row}: there is no partition {wanted}, but {partition_count} of them"
                    )
                return wanted
        if input_slice(&self.records.key, row, &key) != INPUT_FINE:
            raise ProtocolError(f"row {row}: {input_message(INPUT_BAD_OFFSETS).decode()}")
        if key.size < 0:
            return -1 if partition_count > 1 else 0  # in their order where there is no choice
        return murmur2_partition(key.data, key.size, partition_count)

    def by_partition(self, int32_t partition_count):
        """Return the rows of each partition that has some, in their order: (partition, rows)."""
        # None stands for all.
        cdef int64_t row, place
        if self.partitions is NULL and self.records.key.offsets is NULL and partition_count > 1:
            return [(-1, None)]
        # One buffer more than there are partitions, for rows that do not say.
        cdef byte_buffer *buffers = <byte_buffer *>calloc(partition_count + 1, sizeof(byte_buffer))
        if buffers is NULL:
            raise MemoryError
        try:
            for row in range(self.records.row_count):
                place = self._partition(row, partition_count)
                if place < 0:
                    place = partition_count
                if not buffer_append(&buffers[place], <const uint8_t *>&row, sizeof(int64_t)):
                    raise MemoryError
            return [
                (-1 if place == partition_count else place,
                 PyBytes_FromStringAndSize(<const char *>buffers[place].data, buffers[place].size))
                for place in range(partition_count + 1)
                if buffers[place].size
            ]
        finally:
            for place in range(partition_count + 1):
                buffer_free(&buffers[place])
            free(buffers)

    def encode(
        self, bytes rows, int64_t first, *, int64_t timestamp, int32_t batch_bytes_max, int codec,
        compress,
    ):
        """Encode a batch from the `first` of these rows on; return it and the first row left."""
        cdef record_input records = self.records
        cdef batch_plan plan
        cdef batch_header header
        cdef int status
        cdef bint alone = False
        cdef Py_ssize_t room
        cdef PyObject *scratch
        cdef uint8_t *p
        records.timestamp.missing = timestamp
        if rows is not None:
            records.rows = <const int64_t *>PyBytes_AS_STRING(rows)
            records.row_count = len(rows) // sizeof(int64_t)
        memset(&header, 0, sizeof(batch_header))
        header.leader_epoch = -1
        header.attributes = codec
        header.producer_id = header.producer_epoch = header.base_sequence = -1
        memset(&plan, 0, sizeof(batch_plan))
        plan.first = first
        room = BATCH_HEADER_SIZE if compress is None else 0
        # As large as a batch may be, and cut to what is written: no row is visited or copied twice.
        scratch = new_bytes(NULL, batch_bytes_max)
        p = <uint8_t *>bytes_data(scratch)
        with nogil:
            status = input_fill(&records, &plan, p + room, batch_bytes_max - BATCH_HEADER_SIZE)
            if status == INPUT_FINE and plan.last == first:  # one that is too large has a batch
                status = input_plan(&records, 0, &plan)
                alone = True
            elif status == INPUT_FINE and room:
                _describe(&header, &plan, room)
                batch_write(p, &header)
        encoded = _cut(scratch, room + plan.payload_size if status == INPUT_FINE and not alone else 0)
        if status != INPUT_FINE:
            row = plan.last if records.rows is NULL else records.rows[plan.last]
            raise ProtocolError(f"row {row}: {input_message(status).decode()}")
        if alone:
            return _encode_batch(&records, &plan, &header, compress), plan.last
        if room:
            return encoded, plan.last
        _describe(&header, &plan, 0)
        return assemble(&header, compress(memoryview(encoded))), plan.last


cdef bytes _cut(PyObject *data, Py_ssize_t size):
    """Return the first of the bytes of an object that is the caller's only, and is so no more."""
    resize_bytes(&data, size)
    cut = <bytes>data
    Py_DECREF(cut)  # `cut` is a reference of its own
    return cut
