"""The table-driven message codec: plans compiled from declarations, read and written in C.

A plan is a tree of tables, one for each struct; a table is an array of fields in the order of the
wire. Values are read into and written from the slots of the declared classes directly, without
attribute lookups. What is read is stored in its owner before it is filled, so that an error half
way needs no clean-up: dropping the root drops everything.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool, PyObject_Size, PyTypeObject
from libc.stdint cimport INT8_MAX, INT8_MIN, INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT16_MAX, UINT32_MAX
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memmove

from moldau.kernel.errors import ProtocolError

cdef extern from "Python.h":
    void Py_CLEAR(PyObject*)
    void Py_INCREF(PyObject*)
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    PyTypeObject PyMemberDescr_Type
    bint PyByteArray_Check(PyObject*)
    bint PyBytes_Check(PyObject*)
    char* PyBytes_AS_STRING(PyObject*)
    PyObject* PyBytes_New "PyBytes_FromStringAndSize"(const char*, Py_ssize_t) except NULL
    Py_ssize_t PyBytes_GET_SIZE(PyObject*)
    void PyErr_Clear()
    bint PyFloat_Check(PyObject*)
    double PyFloat_AsDouble(PyObject*) except? -1
    PyObject* PyFloat_FromDouble(double) except NULL
    bint PyLong_Check(PyObject*)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*) except? -1
    PyObject* PyLong_FromLongLong(long long) except NULL
    bint PyMemoryView_Check(PyObject*)
    void PyObject_GC_UnTrack(void*)
    bint PyObject_TypeCheck(PyObject*, PyTypeObject*)
    bint PySequence_Check(PyObject*)
    PyObject* PyTuple_New(Py_ssize_t) except NULL
    bint PyTuple_Check(PyObject*)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject*)
    PyObject* PyType_GenericAlloc(PyTypeObject*, Py_ssize_t) except NULL
    bint PyUnicode_Check(PyObject*)
    const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*)
    PyObject* PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)
    bint Py_IS_TYPE(PyObject*, PyTypeObject*)
    ctypedef struct PyTupleObject:
        PyObject** ob_item

cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef* d_member

cdef extern from "wire.h":
    uint16_t load_be16(const uint8_t*)
    uint32_t load_be32(const uint8_t*)
    int64_t load_be64(const uint8_t*)
    double load_be_double(const uint8_t*)
    void store_be16(uint8_t*, uint16_t)
    void store_be32(uint8_t*, uint32_t)
    void store_be64(uint8_t*, int64_t)
    void store_be_double(uint8_t*, double)
    int load_uvarint32(const uint8_t*, const uint8_t*, uint32_t*)
    int store_uvarint32(uint8_t*, uint32_t)
    int uvarint32_size(uint32_t)
    int UVARINT_TRUNCATED

cdef enum:
    # Kafka's own limits: a string's length must fit 16 bits even where it is written as a varint.
    STRING_BYTES_MAX = 0x7fff
    # Ours: no struct of the protocol has more than a handful.
    TAGGED_FIELDS_MAX = 64
    # Records smaller than this are copied: cheaper than one more piece to send.
    BY_REFERENCE_BYTES_MIN = 1024

cdef enum Code:
    BOOLEAN
    INT8
    INT16
    UINT16
    INT32
    UINT32
    INT64
    FLOAT64
    UUID
    STRING
    BLOB
    RECORDS
    ARRAY
    STRUCT

cdef enum Prefix:
    NO_LENGTH
    LENGTH_16
    LENGTH_32
    LENGTH_VARINT

# Wire name -> code, bytes it takes at least (of variable ones: without the length's), bounds.
cdef dict PRIMITIVES = {
    "boolean": (BOOLEAN, 1, 0, 0),
    "int8": (INT8, 1, INT8_MIN, INT8_MAX),
    "int16": (INT16, 2, INT16_MIN, INT16_MAX),
    "uint16": (UINT16, 2, 0, UINT16_MAX),
    "int32": (INT32, 4, INT32_MIN, INT32_MAX),
    "uint32": (UINT32, 4, 0, UINT32_MAX),
    "int64": (INT64, 8, INT64_MIN, INT64_MAX),
    "float64": (FLOAT64, 8, 0, 0),
    "uuid": (UUID, 16, 0, 0),
    "string": (STRING, 0, 0, STRING_BYTES_MAX),
    "legacy_string": (STRING, 0, 0, STRING_BYTES_MAX),
    "blob": (BLOB, 0, 0, INT32_MAX - 1),
    "records": (RECORDS, 0, 0, INT32_MAX - 1),
}


# ---------------------------------------------------------------------------------------- tables

cdef struct Op:
    Code code
    Prefix prefix
    bint nullable
    bint ignorable
    int tag  # -1: not tagged
    Py_ssize_t slot  # where an instance keeps the value
    Py_ssize_t size_min  # bytes that it takes at least
    int64_t low  # bounds of a number, or of a length
    int64_t high
    PyObject* default_  # NULL: a struct with all its defaults, made anew
    PyObject* path  # "Struct.field", for errors
    PyObject* table  # of a struct
    Op* element  # of an array


@cython.final
@cython.no_gc_clear
cdef class Table:
    """One struct at one version: regular fields, then tagged ones by tag, then absent ones."""

    cdef PyTypeObject* type
    cdef object cls
    cdef Op* ops
    cdef int regular_count
    cdef int tagged_count
    cdef int count
    cdef bint flexible
    cdef Py_ssize_t size_min
    cdef list kept  # owns what the ops point to
    cdef str tags_path

    def __cinit__(self, cls, int version, bint flexible, dict memo):
        self.cls = cls
        self.type = <PyTypeObject*><PyObject*>cls
        self.flexible = flexible
        self.size_min = 1 if flexible else 0
        self.kept = []
        self.tags_path = f"{cls.__name__}'s tagged fields"
        fields = cls._fields
        present = [f for f in fields if f.since <= version <= f.until]
        regular = [f for f in present if f.tag is None]
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag)
        absent = [f for f in fields if not f.since <= version <= f.until]
        if len(tagged) > TAGGED_FIELDS_MAX or (tagged and not flexible):
            raise ValueError(f"{cls.__name__} v{version}: cannot have {len(tagged)} tagged fields")
        self.regular_count = len(regular)
        self.tagged_count = len(tagged)
        self.count = len(fields)
        # Each op is followed, half an array later, by the op of its elements.
        self.ops = <Op*>PyMem_Calloc(2 * self.count + 1, sizeof(Op))
        if self.ops == NULL:
            raise MemoryError
        for i, f in enumerate(regular + tagged + absent):
            self.fill(&self.ops[i], &self.ops[self.count + i], f, version, memo)
            if i < self.regular_count:
                self.size_min += self.ops[i].size_min

    def __dealloc__(self):
        PyMem_Free(self.ops)

    cdef int fill(self, Op* op, Op* element, field, int version, dict memo) except -1:
        op.slot = self.slot_of(field.name)
        op.tag = -1 if field.tag is None else field.tag
        op.ignorable = field.ignorable
        op.path = self.keep(f"{self.cls.__name__}.{field.name}")
        op.default_ = NULL if field.default_is_fresh else self.keep(field.default)
        kind = field.type
        if hasattr(kind, "of"):
            op.code = ARRAY
            op.prefix = LENGTH_VARINT if self.flexible else LENGTH_32
            op.size_min = 1 if self.flexible else 4
            op.high = INT32_MAX - 1
            op.element = element
            element.tag = -1
            element.path = op.path
            self.fill_kind(element, kind.of, version, memo)
        else:
            self.fill_kind(op, kind, version, memo)
        op.nullable = field.nullable <= version
        if op.nullable and op.code == STRUCT:
            op.size_min = 1  # the marker of null
        return 0

    cdef int fill_kind(self, Op* op, kind, int version, dict memo) except -1:
        """Fill in what the type of a value, or of an array's element, says."""
        cdef Table table
        if isinstance(kind, type):
            table = memo.get(kind)
            if table is None:
                table = memo[kind] = Table(kind, version, self.flexible, memo)
            op.code = STRUCT
            op.table = self.keep(table)
            op.size_min = table.size_min
            return 0
        op.code, op.size_min, op.low, op.high = PRIMITIVES[kind.name]
        if op.code in (STRING, BLOB, RECORDS):
            if self.flexible and kind.name != "legacy_string":
                op.prefix, op.size_min = LENGTH_VARINT, 1
            elif op.code == STRING:
                op.prefix, op.size_min = LENGTH_16, 2
            else:
                op.prefix, op.size_min = LENGTH_32, 4
        return 0

    cdef Py_ssize_t slot_of(self, str name) except -1:
        descriptor = self.cls.__dict__[name]
        if not Py_IS_TYPE(<PyObject*>descriptor, &PyMemberDescr_Type):
            raise TypeError(f"{self.cls.__name__}.{name} is not a slot")
        return (<PyMemberDescrObject*><PyObject*>descriptor).d_member.offset

    cdef PyObject* keep(self, value):
        self.kept.append(value)
        return <PyObject*>value


cdef inline PyObject** slot(PyObject* instance, const Op* op) noexcept:
    return <PyObject**>(<char*>instance + op.slot)


cdef inline int new_struct(Table table, PyObject** place) except -1:
    place[0] = PyType_GenericAlloc(table.type, 0)
    # What is decoded is a tree: the cycle collector would walk it in vain.
    PyObject_GC_UnTrack(place[0])
    return 0


cdef int put_default(const Op* op, PyObject** place) except -1:
    cdef Table table
    cdef int i
    if op.default_ != NULL:
        Py_INCREF(op.default_)
        place[0] = op.default_
        return 0
    table = <Table>op.table
    new_struct(table, place)
    for i in range(table.count):
        put_default(&table.ops[i], slot(place[0], &table.ops[i]))
    return 0


# --------------------------------------------------------------------------------------- reading

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
        PyErr_Clear()
        malformed(r, op.path, "not UTF-8")
    return 0


cdef int read_view(Reader* r, Py_ssize_t length, PyObject** place) except -1:
    cdef Py_ssize_t position = r.at - r.start
    if r.view == NULL:
        view = memoryview(<object>r.data)
        if view.itemsize != 1 or view.ndim != 1:
            view = view.cast("B")
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


# --------------------------------------------------------------------------------------- writing

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
        PyErr_Clear()
        unfit(w, op, "cannot be UTF-8: it has surrogates")
    write_length(w, op, length)
    return write_bytes(w, text, length)


cdef int write_buffer(Writer* w, const Op* op, PyObject* value) except -1:
    cdef Py_buffer buffer
    if PyBytes_Check(value):
        return write_buffer_bytes(w, op, value, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    if not PyMemoryView_Check(value) and not PyByteArray_Check(value):
        mistyped(w, op, "bytes, a bytearray or a memoryview", value)
    PyObject_GetBuffer(<object>value, &buffer, PyBUF_SIMPLE)
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
    (<list>w.pieces).append((w.at - w.start, <object>value))
    w.referred += size
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
        unfit(w, op, f"is {<object>value}, outside of {op.low} to {op.high}")
    if op.size_min == 4:
        store_be32(w.at, <uint32_t>number)
    elif op.size_min == 8:
        store_be64(w.at, number)
    elif op.size_min == 2:
        store_be16(w.at, <uint16_t>number)
    else:
        w.at[0] = <uint8_t>number
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
        if not PyBytes_Check(value) or PyBytes_GET_SIZE(value) != 16:
            unfit(w, op, f"takes 16 bytes, not {<object>value!r}")
        memcpy(w.at, PyBytes_AS_STRING(value), 16)
    elif op.code == FLOAT64:
        if not PyFloat_Check(value):
            mistyped(w, op, "a float", value)
        store_be_double(w.at, PyFloat_AsDouble(value))
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
        mistyped(w, op, f"a {table.cls.__name__}", instance)
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


# ----------------------------------------------------------------------------------------- plans

@cython.final
cdef class Plan:
    """One version of one message, compiled from the class's fields."""

    cdef Table table
    cdef str title
    cdef Op root  # stands for the whole message, in errors

    def __cinit__(self, cls, int version, *, bint flexible):
        self.table = Table(cls, version, flexible, {})
        self.title = f"{cls.__name__} v{version}"
        self.root.path = <PyObject*>self.table.tags_path

    def __repr__(self):
        return f"<plan of {self.title}>"

    def decode(self, data):
        cdef Py_ssize_t position = 0
        return decode_at(self, data, &position, True)

    def decode_from(self, data, Py_ssize_t position=0):
        message = decode_at(self, data, &position, False)
        return message, position

    def encode(self, message):
        cdef Writer w
        open_writer(&w, NULL)
        try:
            write_message(&w, self, message)
            return PyBytes_FromStringAndSize(<const char*>w.start, w.at - w.start)
        finally:
            PyMem_Free(w.start)

    def encode_chunks(self, message):
        cdef Writer w
        cdef list pieces = []
        open_writer(&w, <PyObject*>pieces)
        try:
            write_message(&w, self, message)
            return chunks(&w)
        finally:
            PyMem_Free(w.start)


def encode_frame(Plan header_plan not None, header, Plan plan not None, message):
    cdef Writer w
    cdef list pieces = []
    cdef Py_ssize_t size
    open_writer(&w, <PyObject*>pieces)
    try:
        reserve(&w, 4)
        w.at += 4
        write_message(&w, header_plan, header)
        write_message(&w, plan, message)
        size = w.at - w.start - 4 + w.referred
        if size > INT32_MAX:
            raise ProtocolError(f"{plan.title}: a frame of {size} bytes is over the protocol's limit")
        store_be32(w.start, <uint32_t>size)
        return chunks(&w)
    finally:
        PyMem_Free(w.start)


cdef object decode_at(Plan plan, data, Py_ssize_t* position, bint whole):
    cdef Reader r
    cdef Py_buffer buffer
    cdef PyObject* message = NULL
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    r.start = <const uint8_t*>buffer.buf
    r.end = r.start + buffer.len
    r.at = r.start + position[0]
    r.plan = <PyObject*>plan
    r.data = <PyObject*>data
    r.view = NULL
    try:
        if not 0 <= position[0] <= buffer.len:
            raise ProtocolError(f"{plan.title}: no position {position[0]} in {buffer.len} bytes")
        read_struct(&r, plan.table, &message)
        if whole and r.at != r.end:
            raise ProtocolError(
                f"{plan.title}: {r.end - r.at} bytes are left over at byte {r.at - r.start}"
            )
        position[0] = r.at - r.start
        return <object>message
    finally:
        Py_CLEAR(message)
        Py_CLEAR(r.view)
        PyBuffer_Release(&buffer)


cdef int open_writer(Writer* w, PyObject* pieces) except -1:
    w.start = w.at = w.end = NULL
    w.pieces = pieces
    w.referred = 0
    return 0


cdef int write_message(Writer* w, Plan plan, message) except -1:
    w.plan = <PyObject*>plan
    return write_struct(w, plan.table, &plan.root, <PyObject*>message)


cdef list chunks(Writer* w):
    """Cut what was written where records go in between by reference."""
    cdef Py_ssize_t where, done = 0
    cdef list result = []
    for where, records in <list>w.pieces:
        result.append(PyBytes_FromStringAndSize(<const char*>w.start + done, where - done))
        result.append(records)
        done = where
    if w.at - w.start > done:
        result.append(PyBytes_FromStringAndSize(<const char*>w.start + done, w.at - w.start - done))
    return result
