/* Writing records: sizes first, then bytes, into memory that the caller has made room for. */
#ifndef MOLDAU_ENCODE_H
#define MOLDAU_ENCODE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "varint.h"

/* Bytes somewhere else; size -1 is null. */
typedef struct {
    const uint8_t *data;
    int64_t size;
} slice;

static inline int64_t slice_size(slice s)
{
    return varint_size(s.size) + (s.size > 0 ? s.size : 0);
}

static inline uint8_t *slice_put(uint8_t *p, slice s)
{
    p = varint_put(p, s.size);
    if (s.size > 0) {
        memcpy(p, s.data, (size_t)s.size);
        p += s.size;
    }
    return p;
}

typedef struct {
    int64_t timestamp_delta;
    int64_t offset_delta;
    slice key;
    slice value;
    int64_t header_count;
    int64_t headers_size; /* of all headers, without the count */
} record_fields;

/* The size of a record without its own length in front. */
static inline int64_t record_body_size(const record_fields *r)
{
    return 1 + varint_size(r->timestamp_delta) + varint_size(r->offset_delta) +
           slice_size(r->key) + slice_size(r->value) + varint_size(r->header_count) +
           r->headers_size;
}

/* Write a record up to its headers, which the caller writes behind it. */
static inline uint8_t *record_put(uint8_t *p, const record_fields *r, int64_t body_size)
{
    p = varint_put(p, body_size);
    *p++ = 0; /* attributes: unused */
    p = varint_put(p, r->timestamp_delta);
    p = varint_put(p, r->offset_delta);
    p = slice_put(p, r->key);
    p = slice_put(p, r->value);
    return varint_put(p, r->header_count);
}

/* Bytes that grow; zero-initialized, they are empty. */
typedef struct {
    uint8_t *data;
    size_t size;
    size_t capacity;
} byte_buffer;

/* Make room for `more` bytes behind the last; 0 when there is no memory. */
static inline int buffer_reserve(byte_buffer *b, size_t more)
{
    if (more <= b->capacity - b->size)
        return 1;
    if (more > SIZE_MAX / 4 - b->size)
        return 0;
    size_t capacity = b->size + more;
    if (capacity < 2 * b->capacity)
        capacity = 2 * b->capacity;
    uint8_t *data = (uint8_t *)realloc(b->data, capacity);
    if (!data)
        return 0;
    b->data = data;
    b->capacity = capacity;
    return 1;
}

static inline int buffer_append(byte_buffer *b, const uint8_t *data, size_t size)
{
    if (!buffer_reserve(b, size))
        return 0;
    if (size)
        memcpy(b->data + b->size, data, size);
    b->size += size;
    return 1;
}

static inline void buffer_free(byte_buffer *b)
{
    free(b->data);
    memset(b, 0, sizeof *b);
}

#endif
