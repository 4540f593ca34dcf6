"""Records to and from Arrow columns, through Arrow's own C interface and without its library."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strcmp, strlen

from moldau._native.encode cimport buffer_append, buffer_free, byte_buffer, slice_
from moldau._native.records cimport (
    ATTRIBUTE_CODEC, ATTRIBUTE_CONTROL, ATTRIBUTE_LOG_APPEND_TIME, BATCH_HEADER_SIZE, Batch,
    assemble, batch_header, batch_write, invalid_record, record_walk,
    require_inside,
)

from moldau.kernel.errors import ProtocolError

cdef extern from "Python.h":
    # As pointers: only who holds the one reference may cut an object.
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size) except NULL
    char *bytes_data "PyBytes_AS_STRING"(PyObject *data)
    int resize_bytes "_PyBytes_Resize"(PyObject **data, Py_ssize_t size) except -1

cdef extern from "crc32c.h" nogil:
    void crc32c_initialize()

cdef extern from "murmur2.h" nogil:
    int32_t murmur2_partition(const uint8_t *data, size_t size, int32_t partition_count)

cdef extern from "arrow.h" nogil:
    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept
        const char *(*get_last_error)(ArrowArrayStream *) noexcept
        void (*release)(ArrowArrayStream *) noexcept
    struct ArrowSchema:
        const char *format
        const char *name
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept
    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        void (*release)(ArrowArray *) noexcept
    struct shared_memory:
        pass
    void shared_drop(shared_memory *memory)

cdef extern from "columns.h" nogil:
    enum:
        COLUMNS_FINE
        COLUMNS_BAD_RECORD
        COLUMNS_TOO_LARGE

    ctypedef struct columns:
        shared_memory shared
        int64_t row_count

    ctypedef struct columns_batch:
        int64_t base_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int32_t record_count
        int32_t last_offset_delta
        int log_append_time

    columns *columns_new(int with_headers, int64_t bytes_max)
    int columns_append_batch(columns *c, const columns_batch *batch, const uint8_t *data,
                             int64_t size, int64_t start_offset, record_walk *result)
    bint columns_export_schema(const columns *c, ArrowSchema *out)
    bint columns_export(columns *c, ArrowArray *out)
    int columns_place(columns *c, const char *topic, size_t size, int32_t partition)

cdef extern from "columns_stream.h" nogil:
    bint columns_stream_make(ArrowArrayStream *out, columns **chunks, int64_t count)

cdef extern from "arrow_input.h" nogil:
    enum:
        INPUT_FINE
        INPUT_BAD_OFFSETS

    ctypedef struct binary_input:
        const uint8_t *validity
        const uint8_t *offsets
        const uint8_t *data
        int64_t start
        int wide

    ctypedef struct timestamp_input:
        const uint8_t *validity
        const uint8_t *values
        int64_t start
        int64_t multiplier
        int64_t divisor
        int64_t missing

    ctypedef struct header_input:
        binary_input lists
        const uint8_t *item_validity
        int64_t item_start
        int64_t item_count
        binary_input keys
        binary_input values

    ctypedef struct record_input:
        int64_t row_count
        const int64_t *rows
        binary_input key
        binary_input value
        timestamp_input timestamp
        header_input headers

    ctypedef struct batch_plan:
        int64_t first
        int64_t last
        int64_t payload_size
        int64_t base_timestamp
        int64_t max_timestamp

    const char *input_message(int status)
    int input_slice(const binary_input *input_, int64_t row, slice_ *out)
    bint input_is_valid(const uint8_t *validity, int64_t row)
    int input_plan(const record_input *input_, int64_t payload_max, batch_plan *plan)
    int input_fill(const record_input *input_, batch_plan *plan, uint8_t *p, int64_t room)
    int input_write(const record_input *input_, const batch_plan *plan, uint8_t *p)

crc32c_initialize()


cdef void _free_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release is not NULL:
        schema.release(schema)
    free(schema)


cdef void _free_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release is not NULL:
        array.release(array)
    free(array)


@cython.final
cdef class Columns:
    cdef columns *columns

    def __cinit__(self, *, bint headers=True, int32_t column_bytes_max=INT32_MAX):
        self.columns = columns_new(headers, column_bytes_max)
        if self.columns is NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.columns is not NULL:
            shared_drop(&self.columns.shared)

    @property
    def row_count(self):
        return self.columns.row_count

    def __len__(self):
        return self.columns.row_count

    def place(self, str topic not None, int32_t partition):
        cdef bytes name = topic.encode()
        cdef const char *text = name
        cdef int status
        with nogil:
            status = columns_place(self.columns, text, strlen(text), partition)
        _require_fine(status)

    def __arrow_c_schema__(self):
        cdef ArrowSchema *schema = <ArrowSchema *>calloc(1, sizeof(ArrowSchema))
        if schema is NULL:
            raise MemoryError
        capsule = PyCapsule_New(schema, "arrow_schema", _free_schema)
        if not columns_export_schema(self.columns, schema):
            raise MemoryError
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        # Arrow lets a producer that has one form only overlook what form was requested.
        cdef ArrowArray *array = <ArrowArray *>calloc(1, sizeof(ArrowArray))
        if array is NULL:
            raise MemoryError
        capsule = PyCapsule_New(array, "arrow_array", _free_array)
        if not columns_export(self.columns, array):
            raise MemoryError
        return self.__arrow_c_schema__(), capsule


cdef int _append(columns *c, Batch batch, object payload, int64_t start_offset) except -1:
    """Append the records of an uncompressed payload."""
    cdef Py_buffer view
    cdef record_walk walk
    cdef columns_batch fields
    cdef int status
    fields.base_offset = batch.base_offset
    fields.base_timestamp = batch.base_timestamp
    fields.max_timestamp = batch.max_timestamp
    fields.record_count = batch.record_count
    fields.last_offset_delta = batch.last_offset_delta
    fields.log_append_time = batch.attributes & ATTRIBUTE_LOG_APPEND_TIME != 0
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    if view.len > INT32_MAX:
        PyBuffer_Release(&view)
        raise OverflowError("more than 2 GiB of records in a batch")
    with nogil:
        status = columns_append_batch(
            c, &fields, <const uint8_t *>view.buf, view.len, start_offset, &walk
        )
    PyBuffer_Release(&view)
    if status == COLUMNS_BAD_RECORD:
        invalid_record(&walk)
    return _require_fine(status)


cdef int _require_fine(int status) except -1:
    if status == COLUMNS_FINE:
        return 0
    if status == COLUMNS_TOO_LARGE:
        raise OverflowError("too many bytes for one column: decode fewer batches at once")
    raise MemoryError


def decode_columns(
    data,
    batches,
    decompress=None,
    *,
    int64_t start_offset=0,
    bint headers=True,
    int32_t column_bytes_max=INT32_MAX,
):
    cdef Columns decoded = Columns(headers=headers, column_bytes_max=column_bytes_max)
    cdef Batch batch
    cdef Py_ssize_t start
    everything = memoryview(data).cast("B")
    for item in batches:
        batch = <Batch?>item
        start = batch.position + BATCH_HEADER_SIZE
        require_inside(batch, everything.nbytes)
        if batch.attributes & ATTRIBUTE_CONTROL:
            continue
        payload = everything[start:batch.position + batch.size]
        # Nothing is nothing in any codec: compaction may empty a batch.
        if batch.attributes & ATTRIBUTE_CODEC and batch.size > BATCH_HEADER_SIZE:
            if decompress is None:
                raise ValueError("a batch is compressed, and nothing to decompress it was given")
            payload = decompress(batch.attributes & ATTRIBUTE_CODEC, payload)
        _append(decoded.columns, batch, payload, start_offset)
    return decoded


cdef void _free_stream(object capsule) noexcept:
    cdef ArrowArrayStream *stream
    stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release is not NULL:
        stream.release(stream)
    free(stream)


def export_stream(chunks):
    cdef list listed = list(chunks)
    cdef Py_ssize_t k, count = len(listed)
    cdef ArrowArrayStream *stream
    cdef columns **pointers
    if not count:
        raise ValueError("a stream has its columns from its first chunk: give it one without rows")
    pointers = <columns **>calloc(count, sizeof(columns *))
    stream = <ArrowArrayStream *>calloc(1, sizeof(ArrowArrayStream))
    try:
        if pointers is NULL or stream is NULL:
            raise MemoryError
        for k in range(count):
            pointers[k] = (<Columns?>listed[k]).columns
        if not columns_stream_make(stream, pointers, count):
            raise MemoryError
    except BaseException:
        free(stream)
        raise
    finally:
        free(pointers)
    return PyCapsule_New(stream, "arrow_array_stream", _free_stream)


# ---- Arrow columns to batches


cdef const uint8_t *_validity(const ArrowArray *array) noexcept:
    if array.null_count == 0:
        return NULL
    return <const uint8_t *>array.buffers[0]


cdef int _require(
    const ArrowSchema *schema, const ArrowArray *array, str formats, int64_t n_buffers, int64_t rows
) except -1:
    """Check that a column is of one of these types, has its buffers and at least so many rows."""
    cdef str found = schema.format.decode()
    if found.partition(":")[0] not in formats.split() or schema.dictionary is not NULL:
        kind = "dictionary" if schema.dictionary is not NULL else f"type {found!r}"
        raise ProtocolError(f"column {schema.name.decode()!r}: Arrow {kind} cannot be encoded")
    if (array.n_buffers != n_buffers or array.n_children != schema.n_children
            or array.length < rows):
        raise ProtocolError(f"column {schema.name.decode()!r}: buffers or rows are missing")
    return 0


cdef int _open_binary(
    binary_input *out, const ArrowSchema *schema, const ArrowArray *array, int64_t start,
    int64_t rows, str formats,
) except -1:
    """Open a column of bytes or text; rows count from `start`."""
    if strcmp(schema.format, "n") == 0:
        return 0  # no offsets: every row is null
    _require(schema, array, formats, 3, start + rows)
    out.validity = _validity(array)
    out.offsets = <const uint8_t *>array.buffers[1]
    out.data = <const uint8_t *>array.buffers[2]
    out.start = start + array.offset
    out.wide = schema.format[0] in b"ZU"
    if rows and out.offsets is NULL:
        raise ProtocolError(f"column {schema.name.decode()!r}: offsets are missing")
    return 0


cdef int _open_timestamp(
    timestamp_input *out, const ArrowSchema *schema, const ArrowArray *array, int64_t start,
    int64_t rows,
) except -1:
    """Open a column of milliseconds, or of timestamps in any unit."""
    _require(schema, array, "l tss tsm tsu tsn", 2, start + rows)
    out.validity = _validity(array)
    out.values = <const uint8_t *>array.buffers[1]
    out.start = start + array.offset
    if schema.format[0] == b"t":
        unit = chr(schema.format[2])
        out.multiplier = {"s": 1000}.get(unit, 1)
        out.divisor = {"u": 1000, "n": 1_000_000}.get(unit, 1)
    return 0


cdef int _open_headers(
    header_input *out, const ArrowSchema *schema, const ArrowArray *array, int64_t start,
    int64_t rows,
) except -1:
    """Open a column of lists of (key, value); an Arrow map is one as well."""
    cdef const ArrowSchema *item_schema
    cdef const ArrowArray *item
    _require(schema, array, "+l +L +m", 2, start + rows)
    item_schema = schema.children[0]
    item = array.children[0]
    _require(item_schema, item, "+s", 1, 0)
    if item_schema.n_children != 2:
        raise ProtocolError("column 'headers': a header has a key and a value")
    out.lists.validity = _validity(array)
    out.lists.offsets = <const uint8_t *>array.buffers[1]
    out.lists.start = start + array.offset
    out.lists.wide = schema.format[1] == b"L"
    out.item_validity = _validity(item)
    out.item_start = item.offset
    out.item_count = item.length
    _open_binary(&out.keys, item_schema.children[0], item.children[0], 0,
                 item.offset + item.length, "u U")
    _open_binary(&out.values, item_schema.children[1], item.children[1], 0,
                 item.offset + item.length, "z Z u U")
    return 0


cdef int _open(record_input *out, const ArrowSchema *schema, const ArrowArray *array) except -1:
    """Open the columns that make records; others are overlooked."""
    cdef int64_t k, row, start = array.offset, rows = array.length
    cdef bint has_value = False
    cdef str name
    if schema.release is NULL or array.release is NULL:
        raise ValueError("the columns were taken by somebody else")
    if strcmp(schema.format, "+s") != 0:
        raise ProtocolError("not a record batch: an Arrow struct was expected")
    _require(schema, array, "+s", 1, 0)
    if _validity(array) is not NULL:
        for row in range(start, start + rows):
            if not input_is_valid(_validity(array), row):
                raise ProtocolError(f"row {row - start} is null")
    out.row_count = rows
    for k in range(schema.n_children):
        name = schema.children[k].name.decode()
        if name == "key":
            _open_binary(&out.key, schema.children[k], array.children[k], start, rows, "z Z u U")
        elif name == "value":
            _open_binary(&out.value, schema.children[k], array.children[k], start, rows, "z Z u U")
            has_value = True
        elif name == "timestamp":
            _open_timestamp(&out.timestamp, schema.children[k], array.children[k], start, rows)
        elif name == "headers":
            _open_headers(&out.headers, schema.children[k], array.children[k], start, rows)
    if not has_value:
        raise ProtocolError("there is no column 'value'")
    return 0


cdef int _describe(batch_header *header, const batch_plan *plan, Py_ssize_t room) noexcept nogil:
    """Say of a batch what was found when it was planned."""
    header.last_offset_delta = plan.last - plan.first - 1
    header.record_count = plan.last - plan.first
    header.base_timestamp = plan.base_timestamp
    header.max_timestamp = plan.max_timestamp
    header.size = room + plan.payload_size
    return 0


cdef bytes _encode_batch(const record_input *records, batch_plan *plan, batch_header *header, compress):
    """Encode the rows of a plan."""
    cdef Py_ssize_t room = BATCH_HEADER_SIZE if compress is None else 0
    cdef bytes encoded = PyBytes_FromStringAndSize(NULL, room + plan.payload_size)
    cdef uint8_t *p = <uint8_t *>PyBytes_AS_STRING(encoded)
    cdef int status
    _describe(header, plan, room)
    with nogil:
        status = input_write(records, plan, p + room)
        if status == INPUT_FINE and room:
            batch_write(p, header)
    if status != INPUT_FINE:
        raise ProtocolError(input_message(status).decode())
    return encoded if compress is None else assemble(header, compress(memoryview(encoded)))


include "arrow_rows.pxi"
