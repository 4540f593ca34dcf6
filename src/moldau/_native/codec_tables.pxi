# Declarations become tables: an array of ops for each struct.

cdef enum:
    # Kafka's own limits: a string's length must fit 16 bits even where it is written as a varint.
    STRING_BYTES_MAX = 0x7fff
    # Ours: no struct of the protocol has more than a handful.
    TAGGED_FIELDS_MAX = 64
    # Smaller records are copied: up to here that is cheaper than two more pieces to send.
    BY_REFERENCE_BYTES_MIN = 4096

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
        if hasattr(kind, "of"):  # an Array
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


cdef object view_of(PyObject* data):
    """Return a memoryview in bytes, whatever items the buffer has."""
    cdef object view = PyMemoryView_FromObject(<object>data)
    cdef Py_buffer* buffer = PyMemoryView_GET_BUFFER(view)
    if buffer.itemsize == 1 and buffer.ndim == 1:
        return view
    return view.cast("B")


cdef int clear_unicode_error() except -1:
    """Make way for an error of our own; others, such as MemoryError, pass."""
    if not PyErr_ExceptionMatches(PyExc_UnicodeError):
        return -1
    PyErr_Clear()
    return 0
