/* Arrow columns to records: what an ArrowArray holds, read row by row, and batches out of it.
 *
 * The arrays come from a library in this process and are trusted as memory is: buffers are as long
 * as their offsets say. Everything that decides how much is written is checked again when writing.
 */
#ifndef MOLDAU_ARROW_INPUT_H
#define MOLDAU_ARROW_INPUT_H

#include <stdint.h>
#include <string.h>

#include "arrow.h"
#include "batch.h"
#include "encode.h"

enum input_status {
    INPUT_FINE,
    INPUT_BAD_OFFSETS,
    INPUT_TIMESTAMP_RANGE,
    INPUT_NULL_HEADER,
    INPUT_TOO_LARGE,
    INPUT_CHANGED
};

static inline const char *input_message(int status)
{
    static const char *const messages[] = {
        [INPUT_FINE] = "",
        [INPUT_BAD_OFFSETS] = "the column's offsets make no sense",
        [INPUT_TIMESTAMP_RANGE] = "the timestamp has too many milliseconds",
        [INPUT_NULL_HEADER] = "a header, or its key, is null",
        [INPUT_TOO_LARGE] = "the record has more than 2 GiB",
        [INPUT_CHANGED] = "the columns changed while they were being encoded",
    };
    return messages[status];
}

/* Offsets of 32 or 64 bits; NULL for a column of nulls. */
typedef struct {
    const uint8_t *validity;
    const uint8_t *offsets;
    const uint8_t *data;
    int64_t start; /* the row of the array that is row 0 here */
    int wide;
} binary_input;

typedef struct {
    const uint8_t *validity;
    const uint8_t *values; /* NULL when there is no such column */
    int64_t start;
    int64_t multiplier; /* to milliseconds */
    int64_t divisor;
    int64_t missing; /* for a null */
} timestamp_input;

typedef struct {
    binary_input lists; /* its offsets count headers; NULL when there is no such column */
    const uint8_t *item_validity;
    int64_t item_start;
    int64_t item_count;
    binary_input keys;
    binary_input values;
} header_input;

typedef struct {
    int64_t row_count;
    const int64_t *rows; /* those that count, in this order; NULL for all */
    binary_input key;
    binary_input value;
    timestamp_input timestamp;
    header_input headers;
} record_input;

static inline int input_is_valid(const uint8_t *validity, int64_t row)
{
    return !validity || (validity[row >> 3] >> (row & 7) & 1);
}

/* Where row `row` begins and ends; 0 if that is nonsense. */
static inline int input_range(const binary_input *in, int64_t row, int64_t *begin, int64_t *end)
{
    if (in->wide) {
        memcpy(begin, in->offsets + 8 * row, 8);
        memcpy(end, in->offsets + 8 * (row + 1), 8);
    } else {
        int32_t narrow[2];
        memcpy(narrow, in->offsets + 4 * row, 8);
        *begin = narrow[0];
        *end = narrow[1];
    }
    return 0 <= *begin && *begin <= *end;
}

static inline int input_slice(const binary_input *in, int64_t row, slice *out)
{
    int64_t begin, end;
    row += in->start;
    out->data = NULL;
    out->size = -1;
    if (!in->offsets || !input_is_valid(in->validity, row))
        return INPUT_FINE;
    if (!input_range(in, row, &begin, &end) || (!in->data && begin < end))
        return INPUT_BAD_OFFSETS;
    if (end - begin > INT32_MAX)
        return INPUT_TOO_LARGE;
    out->data = in->data ? in->data + begin : NULL;
    out->size = end - begin;
    return INPUT_FINE;
}

static inline int input_timestamp(const timestamp_input *in, int64_t row, int64_t *out)
{
    int64_t value;
    row += in->start;
    *out = in->missing;
    if (!in->values || !input_is_valid(in->validity, row))
        return INPUT_FINE;
    memcpy(&value, in->values + 8 * row, 8);
    if (__builtin_mul_overflow(value, in->multiplier, out))
        return INPUT_TIMESTAMP_RANGE;
    if (in->divisor > 1) /* towards the past, also before 1970 */
        *out = value / in->divisor - (value % in->divisor < 0);
    return INPUT_FINE;
}

static inline int input_header(const header_input *in, int64_t item, slice *key, slice *value)
{
    item += in->item_start;
    if (!input_is_valid(in->item_validity, item))
        return INPUT_NULL_HEADER;
    int status = input_slice(&in->keys, item, key);
    if (status == INPUT_FINE && key->size < 0)
        status = INPUT_NULL_HEADER;
    return status == INPUT_FINE ? input_slice(&in->values, item, value) : status;
}

/* Read everything about a row but its headers' bytes, whose place is [*begin, *end). */
static inline int input_record(const record_input *in, int64_t row, record_fields *r,
                               int64_t *timestamp, int64_t *begin, int64_t *end)
{
    if (in->rows)
        row = in->rows[row];
    int status = input_slice(&in->key, row, &r->key);
    if (status == INPUT_FINE)
        status = input_slice(&in->value, row, &r->value);
    if (status == INPUT_FINE)
        status = input_timestamp(&in->timestamp, row, timestamp);
    if (status != INPUT_FINE)
        return status;
    const binary_input *lists = &in->headers.lists;
    *begin = *end = r->header_count = r->headers_size = 0;
    if (!lists->offsets || !input_is_valid(lists->validity, row + lists->start))
        return INPUT_FINE;
    if (!input_range(lists, row + lists->start, begin, end) || *end > in->headers.item_count)
        return INPUT_BAD_OFFSETS;
    if (*end - *begin > INT32_MAX)
        return INPUT_TOO_LARGE;
    r->header_count = *end - *begin;
    for (int64_t item = *begin; item < *end; item++) {
        slice key, value;
        status = input_header(&in->headers, item, &key, &value);
        if (status != INPUT_FINE)
            return status;
        r->headers_size += slice_size(key) + slice_size(value);
        if (r->headers_size > INT32_MAX)
            return INPUT_TOO_LARGE;
    }
    return INPUT_FINE;
}

/* One batch to be: rows [first, last) and what the header says of them. */
typedef struct {
    int64_t first;
    int64_t last;
    int64_t payload_size;
    int64_t base_timestamp;
    int64_t max_timestamp;
} batch_plan;

/* Plan a batch from row plan->first on: as many rows as `payload_max` bytes hold, at least one. On
 * an error plan->last is the row that has it. */
static int input_plan(const record_input *in, int64_t payload_max, batch_plan *plan)
{
    plan->payload_size = 0;
    plan->max_timestamp = -1;
    for (plan->last = plan->first; plan->last < in->row_count; plan->last++) {
        record_fields r;
        int64_t timestamp, begin, end, size;
        int status = input_record(in, plan->last, &r, &timestamp, &begin, &end);
        if (status != INPUT_FINE)
            return status;
        if (plan->last == plan->first)
            plan->base_timestamp = timestamp;
        r.timestamp_delta = wrapping_subtract(timestamp, plan->base_timestamp);
        r.offset_delta = plan->last - plan->first;
        size = record_body_size(&r);
        size += varint_size(size);
        if (plan->last > plan->first &&
            (size > payload_max - plan->payload_size || r.offset_delta == INT32_MAX))
            break;
        if (size > INT32_MAX - BATCH_HEADER_SIZE)
            return INPUT_TOO_LARGE;
        plan->payload_size += size;
        if (timestamp > plan->max_timestamp)
            plan->max_timestamp = timestamp;
    }
    return INPUT_FINE;
}

/* Write one record at *p, whose room ends at `stop`, and move *p behind it. */
static inline int input_put(const record_input *in, const record_fields *r, int64_t size,
                            int64_t begin, int64_t end, uint8_t **p, const uint8_t *stop)
{
    if (varint_size(size) + size > stop - *p)
        return INPUT_CHANGED;
    *p = record_put(*p, r, size);
    for (int64_t item = begin; item < end; item++) {
        slice key, value;
        int status = input_header(&in->headers, item, &key, &value);
        if (status != INPUT_FINE)
            return status;
        if (slice_size(key) + slice_size(value) > stop - *p)
            return INPUT_CHANGED;
        *p = slice_put(slice_put(*p, key), value);
    }
    return INPUT_FINE;
}

/* Write the planned records to plan->payload_size bytes at `p`. */
static int input_write(const record_input *in, const batch_plan *plan, uint8_t *p)
{
    const uint8_t *const stop = p + plan->payload_size;
    for (int64_t row = plan->first; row < plan->last; row++) {
        record_fields r;
        int64_t timestamp, begin, end;
        int status = input_record(in, row, &r, &timestamp, &begin, &end);
        if (status != INPUT_FINE)
            return status;
        r.timestamp_delta = wrapping_subtract(timestamp, plan->base_timestamp);
        r.offset_delta = row - plan->first;
        status = input_put(in, &r, record_body_size(&r), begin, end, &p, stop);
        if (status != INPUT_FINE)
            return status;
    }
    return p == stop ? INPUT_FINE : INPUT_CHANGED;
}

/* Plan and write in one go, as many rows as have room; none if the first has not. On an error
 * plan->last is the row that has it. */
static int input_fill(const record_input *in, batch_plan *plan, uint8_t *p, int64_t room)
{
    const uint8_t *const start = p, *const stop = p + room;
    plan->payload_size = 0;
    plan->max_timestamp = -1;
    for (plan->last = plan->first; plan->last < in->row_count; plan->last++) {
        record_fields r;
        int64_t timestamp, begin, end, size;
        int status = input_record(in, plan->last, &r, &timestamp, &begin, &end);
        if (status != INPUT_FINE)
            return status;
        if (plan->last == plan->first)
            plan->base_timestamp = timestamp;
        r.timestamp_delta = wrapping_subtract(timestamp, plan->base_timestamp);
        r.offset_delta = plan->last - plan->first;
        size = record_body_size(&r);
        if (varint_size(size) + size > stop - p)
            break;
        status = input_put(in, &r, size, begin, end, &p, stop);
        if (status != INPUT_FINE)
            return status;
        if (timestamp > plan->max_timestamp)
            plan->max_timestamp = timestamp;
    }
    plan->payload_size = p - start;
    return INPUT_FINE;
}

#endif
