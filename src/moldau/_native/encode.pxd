"""Declarations of encode.h, for the kernels that write records."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "encode.h" nogil:
    ctypedef struct slice_ "slice":
        const uint8_t *data
        int64_t size

    ctypedef struct record_fields:
        int64_t timestamp_delta
        int64_t offset_delta
        slice_ key
        slice_ value
        int64_t header_count
        int64_t headers_size

    ctypedef struct byte_buffer:
        uint8_t *data
        size_t size

    int varint_size(int64_t x)
    int64_t record_body_size(const record_fields *r)
    uint8_t *record_put(uint8_t *p, const record_fields *r, int64_t body_size)
    int64_t slice_size(slice_ s)
    uint8_t *slice_put(uint8_t *p, slice_ s)
    bint buffer_append(byte_buffer *b, const uint8_t *data, size_t size)
    bint buffer_reserve(byte_buffer *b, size_t more)
    void buffer_free(byte_buffer *b)
