# Writing: every function appends to one growing buffer.

cdef struct Writer:
    uint8_t* start
    uint8_t* at
    uint8_t* end
    PyObject* plan
    PyObject* pieces  # a list of (where, records) sent by reference; NULL: copy everything
    Py_ssize_t referred  # bytes in them


cdef int unfit(Writer* w, const Op* op, str what) except -1:
    cdef Plan plan = <Plan>w.plan
    raise ProtocolError(f"{plan.title}: {<object>op.path} {what}")


cdef int mistyped(Writer* w, const Op* op, str expected, PyObject* value) except -1:
    return unfit(w, op, f"takes {expected}, not {type(<object>value).__name__}")


cdef int grow(Writer* w, Py_ssize_t size) except -1:
    cdef Py_ssize_t used = w.at - w.start
    cdef Py_ssize_t capacity = max(2 * (w.end - w.start), used + size, 1024)
    cdef uint8_t* start = <uint8_t*>PyMem_Realloc(w.start, capacity)
    if start == NULL:
        raise MemoryError
    w.start = start
    w.at = start + used
    w.end = start + capacity
    return 0


cdef inline int reserve(Writer* w, Py_ssize_t size) except -1:
    if w.end - w.at < size:
        grow(w, size)
    return 0


cdef inline int write_bytes(Writer* w, const void* data, Py_ssize_t size) except -1:
    reserve(w, size)
    memcpy(w.at, data, size)
    w.at += size
    return 0


cdef int write_length(Writer* w, const Op* op, Py_ssize_t length) except -1:
    """Write a length or a count; -1 is null."""
    if length > op.high:
        unfit(w, op, f"has length {length}, over the limit of {op.high}")
    reserve(w, 5)
    if op.prefix == LENGTH_VARINT:
        w.at += store_uvarint32(w.at, <uint32_t>(length + 1))
    elif op.prefix == LENGTH_16:
        store_be16(w.at, <uint16_t>length)
        w.at += 2
    else:
        store_be32(w.at, <uint32_t>length)
        w.at += 4
    return 0


cdef int write_text(Writer* w, const Op* op, PyObject* value) except -1:
    cdef Py_ssize_t length
    cdef const char* text
    if not PyUnicode_Check(value):
        mistyped(w, op, "a str", value)
    text = PyUnicode_AsUTF8AndSize(value, &length)
    if text == NULL:
        clear_unicode_error()
        unfit(w, op, "cannot be UTF-8: it has surrogates")
    write_length(w, op, length)
    return write_bytes(w, text, length)


cdef int write_buffer(Writer* w, const Op* op, PyObject* value) except -1:
    cdef Py_buffer buffer
    if PyBytes_Check(value):
        return write_buffer_bytes(w, op, value, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    if isinstance(<object>value, FileRegion) and op.code != BLOB and w.pieces != NULL:
        return write_region(w, op, <FileRegion>value)
    if not PyMemoryView_Check(value) and not PyByteArray_Check(value):
        mistyped(w, op, "bytes, a bytearray or a memoryview", value)
    try:
        PyObject_GetBuffer(<object>value, &buffer, PyBUF_SIMPLE)
    except (BufferError, ValueError) as error:
        unfit(w, op, f"cannot be read: {error}")
    try:
        return write_buffer_bytes(w, op, value, buffer.buf, buffer.len)
    finally:
        PyBuffer_Release(&buffer)


cdef int write_buffer_bytes(
    Writer* w, const Op* op, PyObject* value, const void* data, Py_ssize_t size
) except -1:
    write_length(w, op, size)
    if op.code == BLOB or w.pieces == NULL or size < BY_REFERENCE_BYTES_MIN:
        return write_bytes(w, data, size)
    # A view keeps a bytearray from being resized before it is sent.
    piece = <object>value if PyBytes_Check(value) else view_of(value)
    (<list>w.pieces).append((w.at - w.start, piece))
    w.referred += size
    return 0


cdef int write_region(Writer* w, const Op* op, FileRegion region) except -1:
    """Refer to records that the socket sends from their file."""
    write_length(w, op, region.length)
    (<list>w.pieces).append((w.at - w.start, region))
    w.referred += region.length
    return 0


cdef int write_array(Writer* w, const Op* op, PyObject* value) except -1:
    cdef Py_ssize_t count, i
    if PyTuple_Check(value):
        count = PyTuple_GET_SIZE(value)
        write_length(w, op, count)
        for i in range(count):
            write_value(w, op.element, PyTuple_GET_ITEM(value, i))
        return 0
    if not PySequence_Check(value) or PyUnicode_Check(value) or PyBytes_Check(value):
        mistyped(w, op, "a sequence", value)
    copied = tuple(<object>value)  # because a list could change while its elements are written
    return write_array(w, op, <PyObject*>copied)


cdef int write_null(Writer* w, const Op* op) except -1:
    if not op.nullable:
        unfit(w, op, "cannot be None in this version")
    if op.code != STRUCT:
        return write_length(w, op, -1)
    reserve(w, 1)
    w.at[0] = 0 if op.tag >= 0 else 0xff
    w.at += 1
    return 0


cdef int write_variable(Writer* w, const Op* op, PyObject* value) except -1:
    cdef object held
    if value == Py_None:
        return write_null(w, op)
    if op.code == STRING:
        return write_text(w, op, value)
    held = <object>value  # what follows may run Python code, which may drop it
    if op.code == ARRAY:
        return write_array(w, op, value)
    if op.code != STRUCT:
        return write_buffer(w, op, value)
    if op.nullable:
        reserve(w, 1)
        w.at[0] = 1
        w.at += 1
    return write_struct(w, <Table>op.table, op, value)


cdef int write_integer(Writer* w, const Op* op, PyObject* value) except -1:
    cdef int overflow
    cdef int64_t number
    if not PyLong_Check(value):
        mistyped(w, op, "an int", value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < op.low or number > op.high:
        unfit(w, op, f"is outside of {op.low} to {op.high}")
    if op.size_min == 4:
        store_be32(w.at, <uint32_t>number)
    elif op.size_min == 8:
        store_be64(w.at, number)
    elif op.size_min == 2:
        store_be16(w.at, <uint16_t>number)
    else:
        w.at[0] = <uint8_t>number
    return 0


cdef int write_float(Writer* w, const Op* op, PyObject* value) except -1:
    if not PyFloat_Check(value) and not PyLong_Check(value):
        mistyped(w, op, "a float", value)
    try:
        store_be_double(w.at, PyFloat_AsDouble(value))
    except OverflowError:
        unfit(w, op, "is an int too large for a float")
    return 0


cdef int write_value(Writer* w, const Op* op, PyObject* value) except -1:
    if value == NULL:
        unfit(w, op, "is not set")
    if op.code >= STRING:
        return write_variable(w, op, value)
    reserve(w, op.size_min)
    if op.code == BOOLEAN:
        if value != Py_True and value != Py_False:
            mistyped(w, op, "a bool", value)
        w.at[0] = value == Py_True
    elif op.code == UUID:
        if not PyBytes_Check(value):
            mistyped(w, op, "bytes", value)
        if PyBytes_GET_SIZE(value) != 16:
            unfit(w, op, f"takes 16 bytes, not {PyBytes_GET_SIZE(value)}")
        memcpy(w.at, PyBytes_AS_STRING(value), 16)
    elif op.code == FLOAT64:
        write_float(w, op, value)
    else:
        write_integer(w, op, value)
    w.at += op.size_min
    return 0


cdef bint is_default(const Op* op, PyObject* value) except -1:
    cdef Table table
    cdef object held
    cdef int i
    if value == op.default_ or value == NULL:
        return value != NULL
    held = <object>value
    if op.default_ == NULL:
        table = <Table>op.table
        if not PyObject_TypeCheck(value, table.type):
            return False
        for i in range(table.count):
            if not is_default(&table.ops[i], slot(value, &table.ops[i])[0]):
                return False
        return True
    if op.code == ARRAY and PySequence_Check(value) and op.default_ != Py_None:
        return PyObject_Size(held) == 0
    return PyObject_RichCompareBool(held, <object>op.default_, Py_EQ)


cdef int write_tagged(Writer* w, const Op* op, PyObject* value) except -1:
    cdef PyObject* pieces = w.pieces
    cdef Py_ssize_t size_at, size
    cdef int more
    reserve(w, 6)
    w.at += store_uvarint32(w.at, <uint32_t>op.tag)
    size_at = w.at - w.start
    w.at += 1  # the size, once it is known; larger ones push the value away
    w.pieces = NULL
    write_value(w, op, value)
    w.pieces = pieces
    size = w.at - w.start - size_at - 1
    if size > UINT32_MAX:
        unfit(w, op, f"is {size} bytes long")
    more = uvarint32_size(<uint32_t>size) - 1
    if more:
        reserve(w, more)
        memmove(w.start + size_at + 1 + more, w.start + size_at + 1, size)
        w.at += more
    store_uvarint32(w.start + size_at, <uint32_t>size)
    return 0


cdef int write_struct(Writer* w, Table table, const Op* op, PyObject* instance) except -1:
    cdef Py_ssize_t count_at
    cdef Op* field
    cdef int i, written = 0
    if not PyObject_TypeCheck(instance, table.type):
        mistyped(w, op, table.cls.__name__, instance)
    for i in range(table.regular_count):
        write_value(w, &table.ops[i], slot(instance, &table.ops[i])[0])
    for i in range(table.regular_count + table.tagged_count, table.count):
        field = &table.ops[i]
        if not field.ignorable and not is_default(field, slot(instance, field)[0]):
            unfit(w, field, "is not in this version, and not at its default")
    if not table.flexible:
        return 0
    reserve(w, 1)
    count_at = w.at - w.start
    w.at += 1
    for i in range(table.regular_count, table.regular_count + table.tagged_count):
        field = &table.ops[i]
        if not is_default(field, slot(instance, field)[0]):
            write_tagged(w, field, slot(instance, field)[0])
            written += 1
    w.start[count_at] = <uint8_t>written
    return 0
