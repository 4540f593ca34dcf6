/* Records as Arrow columns: filled batch by batch, then given away.
 *
 *     offset: int64, timestamp: timestamp[ms, UTC], timestamp_type: int8, key: binary,
 *     value: binary, headers: list<struct<key: utf8, value: binary>>
 *
 * What was fetched from one partition has its place in front of these in every row:
 *
 *     topic: utf8, partition: int32
 */
#ifndef MOLDAU_COLUMNS_H
#define MOLDAU_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arrow.h"
#include "encode.h"
#include "utf8.h"
#include "walk.h"

/* Binary or text: bytes in a row, where each begins and ends, and which are there at all. */
typedef struct {
    byte_buffer data;
    int32_t *offsets; /* one more than rows */
    uint8_t *validity;
    int64_t null_count;
} binary_column;

typedef struct {
    shared_memory shared; /* first, so that both have one address */
    int with_headers;
    int64_t bytes_max; /* in one column: its offsets have 32 bits */
    int64_t row_count;
    int64_t row_capacity;
    int64_t *offset;
    int64_t *timestamp;
    int8_t *timestamp_type;
    binary_column key;
    binary_column value;
    int has_place;
    int64_t place_capacity; /* rows */
    int32_t *partition;
    int32_t *topic_offsets; /* one more than rows */
    byte_buffer topic;
    int32_t *header_offsets; /* the first header of each row; one more than rows */
    int64_t header_count;
    int64_t header_capacity;
    binary_column header_key;
    binary_column header_value;
} columns;

enum columns_status { COLUMNS_FINE, COLUMNS_BAD_RECORD, COLUMNS_TOO_LARGE, COLUMNS_NO_MEMORY };

typedef struct {
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int32_t record_count;
    int32_t last_offset_delta;
    int log_append_time;
} columns_batch;

static void columns_free_binary(binary_column *c)
{
    buffer_free(&c->data);
    free(c->offsets);
    free(c->validity);
}

static void columns_destroy(columns *c)
{
    free(c->offset);
    free(c->timestamp);
    free(c->timestamp_type);
    free(c->header_offsets);
    free(c->partition);
    free(c->topic_offsets);
    buffer_free(&c->topic);
    columns_free_binary(&c->key);
    columns_free_binary(&c->value);
    columns_free_binary(&c->header_key);
    columns_free_binary(&c->header_value);
    free(c);
}

/* Change the memory at `place` to `count` things, or return 0 when there is no memory. */
#define COLUMNS_RESIZE(place, count)                                                               \
    do {                                                                                           \
        void *moved = realloc((place), (size_t)(count) * sizeof *(place));                         \
        if (!moved)                                                                                \
            return 0;                                                                              \
        (place) = moved;                                                                           \
    } while (0)

static int columns_resize_binary(binary_column *c, int64_t used, int64_t capacity)
{
    size_t bitmap = (size_t)(capacity + 7) / 8, bitmap_used = (size_t)(used + 7) / 8;
    COLUMNS_RESIZE(c->offsets, capacity + 1);
    COLUMNS_RESIZE(c->validity, bitmap);
    memset(c->validity + bitmap_used, 0, bitmap - bitmap_used);
    c->offsets[0] = 0;
    return 1;
}

/* Make room for `more` rows. */
static int columns_reserve(columns *c, int64_t more)
{
    int64_t capacity = c->row_count + more;
    if (capacity <= c->row_capacity)
        return 1;
    if (capacity < 2 * c->row_capacity)
        capacity = 2 * c->row_capacity;
    COLUMNS_RESIZE(c->offset, capacity);
    COLUMNS_RESIZE(c->timestamp, capacity);
    COLUMNS_RESIZE(c->timestamp_type, capacity);
    COLUMNS_RESIZE(c->header_offsets, capacity + 1);
    c->header_offsets[0] = 0;
    if (!columns_resize_binary(&c->key, c->row_count, capacity) ||
        !columns_resize_binary(&c->value, c->row_count, capacity))
        return 0;
    c->row_capacity = capacity;
    return 1;
}

static int columns_reserve_headers(columns *c, int64_t more)
{
    int64_t capacity = c->header_count + more;
    if (capacity <= c->header_capacity)
        return 1;
    if (capacity < 2 * c->header_capacity)
        capacity = 2 * c->header_capacity;
    if (!columns_resize_binary(&c->header_key, c->header_count, capacity) ||
        !columns_resize_binary(&c->header_value, c->header_count, capacity))
        return 0;
    c->header_capacity = capacity;
    return 1;
}

/* ---- spare columns ----
 *
 * Fresh memory costs more than filling it: a page fault for every 4 KiB. So a few columns that
 * nobody uses any more, of moderate size, are kept for the next who wants some. */

#if defined(__SANITIZE_ADDRESS__)
#define COLUMNS_SPARE_MAX 0 /* let the sanitizer see who touches what is gone */
#else
#define COLUMNS_SPARE_MAX 4
#endif
#define COLUMNS_SPARE_BYTES_MAX (8 << 20)

static columns *columns_spare[COLUMNS_SPARE_MAX + 1]; /* one more: C has no empty arrays */

/* Called by whoever drops the columns last, in any thread. */
static void columns_retire(shared_memory *memory)
{
    columns *c = (columns *)memory;
    size_t bytes = (size_t)c->row_capacity * 32 + (size_t)c->header_capacity * 16 +
                   (size_t)c->place_capacity * 8 + c->topic.capacity +
                   c->key.data.capacity + c->value.data.capacity + c->header_key.data.capacity +
                   c->header_value.data.capacity;
    for (int k = 0; k < COLUMNS_SPARE_MAX && bytes <= COLUMNS_SPARE_BYTES_MAX; k++) {
        columns *nothing = NULL;
        if (__atomic_compare_exchange_n(&columns_spare[k], &nothing, c, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return;
    }
    columns_destroy(c);
}

static void columns_empty_binary(binary_column *c, int64_t capacity)
{
    c->data.size = 0;
    c->null_count = 0;
    memset(c->validity, 0, (size_t)(capacity + 7) / 8);
}

/* A spare one, emptied; NULL when there is none. */
static columns *columns_reuse(void)
{
    columns *c = NULL;
    for (int k = 0; k < COLUMNS_SPARE_MAX && !c; k++)
        c = __atomic_exchange_n(&columns_spare[k], NULL, __ATOMIC_ACQ_REL);
    if (!c)
        return NULL;
    c->row_count = 0;
    c->header_count = 0;
    columns_empty_binary(&c->key, c->row_capacity);
    columns_empty_binary(&c->value, c->row_capacity);
    columns_empty_binary(&c->header_key, c->header_capacity);
    columns_empty_binary(&c->header_value, c->header_capacity);
    return c;
}

/* No rows, but room for one, so that no buffer is NULL; NULL when there is no memory. */
static columns *columns_new(int with_headers, int64_t bytes_max)
{
    columns *c = columns_reuse();
    if (!c) {
        c = (columns *)calloc(1, sizeof *c);
        if (!c)
            return NULL;
        if (!columns_reserve(c, 1) || !columns_reserve_headers(c, 1) ||
            !buffer_reserve(&c->key.data, 1) || !buffer_reserve(&c->value.data, 1) ||
            !buffer_reserve(&c->header_key.data, 1) ||
            !buffer_reserve(&c->header_value.data, 1)) {
            columns_destroy(c);
            return NULL;
        }
    }
    c->shared.users = 1;
    c->shared.free = columns_retire;
    c->with_headers = with_headers;
    c->has_place = 0;
    c->bytes_max = bytes_max;
    return c;
}

static int columns_reserve_place(columns *c, size_t topic_bytes)
{
    if (c->row_count >= c->place_capacity) {
        COLUMNS_RESIZE(c->partition, c->row_count + 1);
        COLUMNS_RESIZE(c->topic_offsets, c->row_count + 1);
        c->place_capacity = c->row_count + 1;
    }
    c->topic.size = 0;
    return buffer_reserve(&c->topic, topic_bytes + 1); /* no buffer is NULL */
}

/* Say which partition all the rows are from, when there are no more to come. */
static int columns_place(columns *c, const char *topic, size_t size, int32_t partition)
{
    size_t rows = (size_t)c->row_count;
    if (rows * size > (size_t)c->bytes_max)
        return COLUMNS_TOO_LARGE;
    if (!columns_reserve_place(c, rows * size))
        return COLUMNS_NO_MEMORY;
    for (size_t row = 0; row < rows; row++) {
        c->partition[row] = partition;
        c->topic_offsets[row] = (int32_t)(row * size);
        memcpy(c->topic.data + row * size, topic, size);
    }
    c->topic_offsets[rows] = (int32_t)(rows * size);
    c->topic.size = rows * size;
    c->has_place = 1;
    return COLUMNS_FINE;
}

/* Append one row, for whose bytes and offset there is room. */
static inline void columns_append(binary_column *c, int64_t row, const uint8_t *data, int32_t size)
{
    if (size >= 0) {
        memcpy(c->data.data + c->data.size, data, (size_t)size);
        c->data.size += (size_t)size;
        c->validity[row >> 3] |= (uint8_t)(1u << (row & 7));
    } else {
        c->null_count++;
    }
    c->offsets[row + 1] = (int32_t)c->data.size;
}

/* Append the headers of the record in `view` to row `row`. */
static int columns_append_headers(columns *c, int64_t row, const uint8_t *data,
                                  const record_view *view)
{
    int64_t position = view->headers;
    header_view header;
    if (!columns_reserve_headers(c, view->header_count) ||
        !buffer_reserve(&c->header_value.data, (size_t)(view->end - view->headers)))
        return COLUMNS_NO_MEMORY;
    for (int32_t k = 0; k < view->header_count; k++) {
        if (!header_next(data, &position, view->end, &header))
            return COLUMNS_BAD_RECORD;
        int64_t place = c->header_count++;
        if (!utf8_append(&c->header_key.data, data + header.key, header.key_size))
            return COLUMNS_NO_MEMORY;
        c->header_key.offsets[place + 1] = (int32_t)c->header_key.data.size;
        columns_append(&c->header_value, place, data + header.value, header.value_size);
    }
    c->header_offsets[row + 1] = (int32_t)c->header_count;
    return COLUMNS_FINE;
}

/* Whether all offsets still fit. A payload has less than 2 GiB, so that it is enough to look when
 * a batch is through: until then sizes are right and only offsets, soon thrown away, are not. */
static int columns_fit(const columns *c)
{
    const binary_column *binaries[] = {&c->key, &c->value, &c->header_key, &c->header_value};
    for (size_t k = 0; k < sizeof binaries / sizeof *binaries; k++)
        if ((int64_t)binaries[k]->data.size > c->bytes_max)
            return 0;
    return c->header_count <= INT32_MAX;
}

/* Append the records at or behind `start_offset` of a payload in one piece. On COLUMNS_BAD_RECORD
 * `result` says what is wrong. After any error the columns can only be dropped. */
static int columns_append_batch(columns *c, const columns_batch *batch, const uint8_t *data,
                                int64_t size, int64_t start_offset, record_walk *result)
{
    record_walk walk;
    record_view view = {0};
    int status = COLUMNS_FINE, with_headers = c->with_headers;
    int64_t row = c->row_count;
    /* A record takes some bytes, whatever the header's count says. */
    int64_t rows_max = size / RECORD_SIZE_MIN;
    if (batch->record_count < rows_max)
        rows_max = batch->record_count;
    walk_begin(&walk, batch->record_count, batch->last_offset_delta, batch->base_timestamp, 0);
    if (walk.error == WALK_FINE &&
        (!columns_reserve(c, rows_max) || !buffer_reserve(&c->key.data, (size_t)size) ||
         !buffer_reserve(&c->value.data, (size_t)size)))
        return COLUMNS_NO_MEMORY;
    while (walk_next(&walk, data, size, &view) == WALK_RECORD) {
        int64_t offset = wrapping_add(batch->base_offset, view.offset_delta);
        if (offset < start_offset)
            continue;
        c->offset[row] = offset;
        c->timestamp[row] = batch->log_append_time ? batch->max_timestamp : view.timestamp;
        columns_append(&c->key, row, data + view.key, view.key_size);
        columns_append(&c->value, row, data + view.value, view.value_size);
        if (UNLIKELY(view.header_count && with_headers)) {
            status = columns_append_headers(c, row, data, &view);
            if (status != COLUMNS_FINE)
                break;
        } else {
            c->header_offsets[row + 1] = (int32_t)c->header_count;
        }
        row++;
    }
    if (status == COLUMNS_FINE && walk_end(&walk) != WALK_FINE)
        status = COLUMNS_BAD_RECORD;
    *result = walk;
    memset(c->timestamp_type + c->row_count, batch->log_append_time, (size_t)(row - c->row_count));
    c->row_count = row;
    return status == COLUMNS_FINE && !columns_fit(c) ? COLUMNS_TOO_LARGE : status;
}

/* ---- giving away ---- */

typedef struct {
    const char *name, *format;
    int64_t flags;
} column_field;

static const column_field column_fields[] = {
    {"topic", "u", 0},
    {"partition", "i", 0},
    {"offset", "l", 0},
    {"timestamp", "tsm:UTC", 0},
    {"timestamp_type", "c", 0},
    {"key", "z", ARROW_FLAG_NULLABLE},
    {"value", "z", ARROW_FLAG_NULLABLE},
};
#define COLUMNS_PLACE_FIELDS 2 /* the first of them */
#define COLUMNS_FIELDS ((int)(sizeof column_fields / sizeof *column_fields))

static int columns_field_count(const columns *c)
{
    return COLUMNS_FIELDS - (c->has_place ? 0 : COLUMNS_PLACE_FIELDS) + (c->with_headers ? 1 : 0);
}

/* 0 when there is no memory; then nothing is left behind. */
static int columns_export_schema(const columns *c, struct ArrowSchema *out)
{
    int n = 0, fine = schema_make(out, "", "+s", 0, columns_field_count(c));
    if (!fine)
        return 0;
    for (int k = c->has_place ? 0 : COLUMNS_PLACE_FIELDS; k < COLUMNS_FIELDS && fine; k++, n++)
        fine = schema_make(out->children[n], column_fields[k].name, column_fields[k].format,
                           column_fields[k].flags, 0);
    if (fine && c->with_headers) {
        struct ArrowSchema *list = out->children[n], *item;
        fine = schema_make(list, "headers", "+l", 0, 1);
        item = fine ? list->children[0] : NULL;
        fine = fine && schema_make(item, "item", "+s", 0, 2) &&
               schema_make(item->children[0], "key", "u", 0, 0) &&
               schema_make(item->children[1], "value", "z", ARROW_FLAG_NULLABLE, 0);
    }
    if (!fine)
        out->release(out);
    return fine;
}

static int columns_export_fixed(columns *c, struct ArrowArray *out, const void *data)
{
    if (!array_make(out, &c->shared, c->row_count, 0, 2, 0))
        return 0;
    out->buffers[1] = data;
    return 1;
}

static int columns_export_binary(columns *c, struct ArrowArray *out, const binary_column *column,
                                 int64_t length)
{
    if (!array_make(out, &c->shared, length, column->null_count, 3, 0))
        return 0;
    out->buffers[0] = column->null_count ? column->validity : NULL;
    out->buffers[1] = column->offsets;
    out->buffers[2] = column->data.data;
    return 1;
}

static int columns_export_headers(columns *c, struct ArrowArray *list)
{
    if (!array_make(list, &c->shared, c->row_count, 0, 2, 1))
        return 0;
    list->buffers[1] = c->header_offsets;
    struct ArrowArray *item = list->children[0];
    return array_make(item, &c->shared, c->header_count, 0, 1, 2) &&
           columns_export_binary(c, item->children[0], &c->header_key, c->header_count) &&
           columns_export_binary(c, item->children[1], &c->header_value, c->header_count);
}

static int columns_export_topic(columns *c, struct ArrowArray *out)
{
    if (!array_make(out, &c->shared, c->row_count, 0, 3, 0))
        return 0;
    out->buffers[1] = c->topic_offsets;
    out->buffers[2] = c->topic.data;
    return 1;
}

/* 0 when there is no memory; then nothing is left behind. */
static int columns_export(columns *c, struct ArrowArray *out)
{
    if (!array_make(out, &c->shared, c->row_count, 0, 1, columns_field_count(c)))
        return 0;
    struct ArrowArray **next = out->children;
    int fine = !c->has_place || (columns_export_topic(c, *next++) &&
                                 columns_export_fixed(c, *next++, c->partition));
    fine = fine && columns_export_fixed(c, *next++, c->offset) &&
           columns_export_fixed(c, *next++, c->timestamp) &&
           columns_export_fixed(c, *next++, c->timestamp_type) &&
           columns_export_binary(c, *next++, &c->key, c->row_count) &&
           columns_export_binary(c, *next++, &c->value, c->row_count) &&
           (!c->with_headers || columns_export_headers(c, *next++));
    if (!fine)
        out->release(out);
    return fine;
}

#endif
