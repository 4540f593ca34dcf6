# Reading: every function takes from the front of the bytes, and checks that they are there.

cdef struct Reader:
    const uint8_t* start
    const uint8_t* at
    const uint8_t* end
    PyObject* plan
    PyObject* data
    PyObject* view  # of data; made, and owned, when the first records are met


cdef int malformed(Reader* r, PyObject* path, str what) except -1:
    cdef Plan plan = <Plan>r.plan
    raise ProtocolError(f"{plan.title}: {<object>path} at byte {r.at - r.start}: {what}")


cdef int truncated(Reader* r, PyObject* path, Py_ssize_t size) except -1:
    return malformed(r, path, f"{size} bytes needed, {r.end - r.at} left")


cdef inline int need(Reader* r, PyObject* path, Py_ssize_t size) except -1:
    if r.end - r.at < size:
        truncated(r, path, size)
    return 0


cdef inline int64_t read_uvarint(Reader* r, PyObject* path) except -1:
    cdef uint32_t value = 0
    cdef int size = load_uvarint32(r.at, r.end, &value)
    if size < 0:
        malformed(r, path, "varint cut short" if size == UVARINT_TRUNCATED else "varint too long")
    r.at += size
    return value


cdef int64_t read_length(Reader* r, const Op* op) except -2:
    """Read a length or a count that can be; -1 is a null that may be."""
    cdef int64_t length
    if op.prefix == LENGTH_VARINT:
        length = read_uvarint(r, op.path) - 1
    elif op.prefix == LENGTH_16:
        need(r, op.path, 2)
        length = <int16_t>load_be16(r.at)
        r.at += 2
    else:
        need(r, op.path, 4)
        length = <int32_t>load_be32(r.at)
        r.at += 4
    if length < 0:
        if length < -1:
            malformed(r, op.path, f"length {length}")
        if not op.nullable:
            malformed(r, op.path, "null where none may be")
    elif length > op.high:
        malformed(r, op.path, f"length {length} over the limit of {op.high}")
    elif op.code != ARRAY:
        need(r, op.path, length)
    elif length > (r.end - r.at) // max(op.element.size_min, 1):
        malformed(r, op.path, f"{length} elements cannot be in the {r.end - r.at} bytes left")
    return length


cdef int read_text(Reader* r, const Op* op, Py_ssize_t length, PyObject** place) except -1:
    place[0] = PyUnicode_DecodeUTF8(<const char*>r.at, length, NULL)
    if place[0] == NULL:
        clear_unicode_error()
        malformed(r, op.path, "not UTF-8")
    return 0


cdef int read_view(Reader* r, Py_ssize_t length, PyObject** place) except -1:
    cdef Py_ssize_t position = r.at - r.start
    if r.view == NULL:
        view = view_of(r.data)
        r.view = <PyObject*>view
        Py_INCREF(r.view)
    piece = (<object>r.view)[position:position + length]
    place[0] = <PyObject*>piece
    Py_INCREF(place[0])
    return 0


cdef int read_array(Reader* r, const Op* op, Py_ssize_t count, PyObject** place) except -1:
    cdef PyObject** items
    cdef Py_ssize_t i
    place[0] = PyTuple_New(count)
    items = (<PyTupleObject*>place[0]).ob_item
    for i in range(count):
        read_value(r, op.element, &items[i])
    return 0


cdef int read_variable(Reader* r, const Op* op, PyObject** place) except -1:
    cdef Py_ssize_t length = read_length(r, op)
    if length < 0:
        Py_INCREF(Py_None)
        place[0] = Py_None
        return 0
    if op.code == ARRAY:
        return read_array(r, op, length, place)
    if op.code == STRING:
        read_text(r, op, length, place)
    elif op.code == BLOB:
        place[0] = PyBytes_New(<const char*>r.at, length)
    else:
        read_view(r, length, place)
    r.at += length
    return 0


cdef bint read_marker(Reader* r, const Op* op) except -1:
    """Read the byte in front of a nullable struct: whether there is one."""
    cdef bint present
    if op.tag >= 0:  # Kafka writes a varint here, 0 for null, and -1 for null elsewhere.
        return read_uvarint(r, op.path) != 0
    need(r, op.path, 1)
    present = <int8_t>r.at[0] >= 0
    r.at += 1
    return present


cdef int read_value(Reader* r, const Op* op, PyObject** place) except -1:
    """Read one value and store a new reference to it in `place`, which holds none."""
    if op.code >= STRING:
        if op.code != STRUCT:
            return read_variable(r, op, place)
        if op.nullable and not read_marker(r, op):
            Py_INCREF(Py_None)
            place[0] = Py_None
            return 0
        return read_struct(r, <Table>op.table, place)
    need(r, op.path, op.size_min)
    if op.code == INT32:
        place[0] = PyLong_FromLongLong(<int32_t>load_be32(r.at))
    elif op.code == INT64:
        place[0] = PyLong_FromLongLong(<int64_t>load_be64(r.at))
    elif op.code == INT16:
        place[0] = PyLong_FromLongLong(<int16_t>load_be16(r.at))
    elif op.code == INT8:
        place[0] = PyLong_FromLongLong(<int8_t>r.at[0])
    elif op.code == BOOLEAN:
        place[0] = Py_True if r.at[0] else Py_False
        Py_INCREF(place[0])
    elif op.code == UUID:
        place[0] = PyBytes_New(<const char*>r.at, 16)
    elif op.code == UINT16:
        place[0] = PyLong_FromLongLong(load_be16(r.at))
    elif op.code == UINT32:
        place[0] = PyLong_FromLongLong(load_be32(r.at))
    else:
        place[0] = PyFloat_FromDouble(load_be_double(r.at))
    r.at += op.size_min
    return 0


cdef const Op* find_tagged(Table table, int64_t tag) noexcept:
    cdef int i
    for i in range(table.regular_count, table.regular_count + table.tagged_count):
        if table.ops[i].tag == tag:
            return &table.ops[i]
    return NULL


cdef int read_tagged(Reader* r, Table table, PyObject* instance) except -1:
    """Read tagged fields as Kafka does: in any order, the last of a tag wins, unknown ones pass."""
    cdef const uint8_t* end = r.end
    cdef PyObject* path = <PyObject*>table.tags_path
    cdef PyObject** place
    cdef const Op* op
    cdef int64_t tag, size, count = read_uvarint(r, path)
    if count > TAGGED_FIELDS_MAX:
        malformed(r, path, f"{count} are more than {TAGGED_FIELDS_MAX}")
    while count > 0:
        count -= 1
        tag = read_uvarint(r, path)
        size = read_uvarint(r, path)
        need(r, path, size)
        op = find_tagged(table, tag)
        if op == NULL:
            r.at += size
            continue
        place = slot(instance, op)
        Py_CLEAR(place[0])
        r.end = r.at + size  # its size, and not the message, is its bound
        read_value(r, op, place)
        if r.at != r.end:
            malformed(r, op.path, f"{r.end - r.at} bytes of the tagged field are left over")
        r.end = end
    return 0


cdef int read_struct(Reader* r, Table table, PyObject** place) except -1:
    cdef PyObject* instance
    cdef PyObject** value
    cdef int i
    new_struct(table, place)
    instance = place[0]
    for i in range(table.regular_count):
        read_value(r, &table.ops[i], slot(instance, &table.ops[i]))
    if table.flexible:
        if r.at < r.end and r.at[0] == 0:  # nearly always
            r.at += 1
        else:
            read_tagged(r, table, instance)
    for i in range(table.regular_count, table.count):
        value = slot(instance, &table.ops[i])
        if value[0] == NULL:
            put_default(&table.ops[i], value)
    return 0
