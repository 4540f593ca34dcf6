"""The table-driven message codec: plans compiled from declarations, read and written in C.

A plan is a tree of tables, one for each struct; a table is an array of fields in the order of the
wire. Values are read into and written from the slots of the declared classes directly, without
attribute lookups. What is read is stored in its owner before it is filled, so that an error half
way needs no clean-up: dropping the root drops everything.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool, PyObject_Size, PyTypeObject
from libc.stdint cimport INT8_MAX, INT8_MIN, INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT16_MAX, UINT32_MAX
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memmove

from moldau._native.files cimport FileRegion

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
    bint PyErr_ExceptionMatches(PyObject*)
    PyObject* PyExc_UnicodeError
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

include "codec_tables.pxi"
include "codec_reader.pxi"
include "codec_writer.pxi"

# Stands for a message as a whole in errors, where its fields have ops.
cdef Op ROOT
cdef str ROOT_PATH = "the plan"
ROOT.path = <PyObject*>ROOT_PATH


@cython.final
@cython.no_gc_clear
cdef class Plan:
    """One version of one message, compiled from the class's fields."""

    cdef Table table
    cdef str title

    def __cinit__(self, cls, int version, *, bint flexible):
        self.table = Table(cls, version, flexible, {})
        self.title = f"{cls.__name__} v{version}"

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
    r.view = NULL
    try:
        if not 0 <= position[0] <= buffer.len:
            raise ProtocolError(f"{plan.title}: no byte {position[0]} in {buffer.len} bytes")
        r.start = <const uint8_t*>buffer.buf
        r.at = r.start + position[0]
        r.end = r.start + buffer.len
        r.plan = <PyObject*>plan
        r.data = <PyObject*>data
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


cdef void open_writer(Writer* w, PyObject* pieces) noexcept:
    w.start = w.at = w.end = NULL
    w.pieces = pieces
    w.referred = 0


cdef int write_message(Writer* w, Plan plan, message) except -1:
    w.plan = <PyObject*>plan
    return write_struct(w, plan.table, &ROOT, <PyObject*>message)


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
