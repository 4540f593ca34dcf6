/* The walk over a batch's records: every rule of the record format is checked here and only here.
 *
 * The walk can stop behind any byte and go on with the next piece, in constant memory, so that a
 * compressed batch is checked while it is being decompressed. It is a coroutine: `state` says where
 * in walk_next it stopped, and its cases fall through, so that a payload in one piece runs straight.
 *
 *     record: length, attributes (one byte, unused), timestamp delta, offset delta,
 *             key length, key, value length, value, header count, headers
 *     header: key length, key, value length, value
 *
 * Positions count from the start of the piece at hand and may lie beyond its end: then the bytes
 * up to there, inside a key or value, are still to come.
 */
#ifndef MOLDAU_WALK_H
#define MOLDAU_WALK_H

#include <stdint.h>

#include "batch.h"
#include "varint.h"

#define NO_TIMESTAMP (-1)
#define RECORD_BODY_SIZE_MIN 6 /* six fields of one byte */
#define RECORD_SIZE_MIN (1 + RECORD_BODY_SIZE_MIN)

enum walk_result { WALK_RECORD, WALK_MORE, WALK_BAD };

enum walk_error {
    WALK_FINE,
    WALK_COUNT,
    WALK_OFFSET_RANGE,
    WALK_VARINT_LENGTH,
    WALK_RECORD_LENGTH,
    WALK_FIELD,
    WALK_OFFSET_DELTA,
    WALK_KEY_LENGTH,
    WALK_VALUE_LENGTH,
    WALK_HEADER_COUNT,
    WALK_HEADER_KEY_LENGTH,
    WALK_HEADER_VALUE_LENGTH,
    WALK_RECORD_SIZE,
    WALK_LEFT_OVER,
    WALK_CUT_SHORT
};

static const char *const walk_messages[] = {
    [WALK_FINE] = "",
    [WALK_COUNT] = "the record count is out of range",
    [WALK_OFFSET_RANGE] = "the last offset delta does not fit the record count",
    [WALK_VARINT_LENGTH] = "a varint is too long",
    [WALK_RECORD_LENGTH] = "the length is too small for a record",
    [WALK_FIELD] = "a field lies beyond the record's end",
    [WALK_OFFSET_DELTA] = "the offset delta is out of order",
    [WALK_KEY_LENGTH] = "the key's length is out of range",
    [WALK_VALUE_LENGTH] = "the value's length is out of range",
    [WALK_HEADER_COUNT] = "the header count is out of range",
    [WALK_HEADER_KEY_LENGTH] = "a header key's length is out of range",
    [WALK_HEADER_VALUE_LENGTH] = "a header value's length is out of range",
    [WALK_RECORD_SIZE] = "the length is larger than the record",
    [WALK_LEFT_OVER] = "bytes are left over behind the last record",
    [WALK_CUT_SHORT] = "the batch ends before its last record does",
};

static inline const char *walk_message(int error)
{
    return walk_messages[error];
}

enum walk_state {
    AT_START, /* of a record */
    AT_LENGTH,
    AT_ATTRIBUTES,
    AT_TIMESTAMP,
    AT_OFFSET,
    AT_KEY,
    AT_VALUE,
    AT_HEADER_COUNT,
    AT_HEADER_KEY,
    AT_HEADER_VALUE,
    AT_END,
    AT_ERROR
};

typedef struct {
    /* What the batch's header says. */
    int64_t base_timestamp;
    int32_t record_count;
    int32_t last_offset_delta;
    int consecutive; /* offset deltas are 0, 1, 2, ...; otherwise they only increase */

    /* Where the walk stands. */
    int state;
    int error;
    int64_t position;
    int64_t record_end;
    uint64_t varint; /* the part of a varint that the last piece had */
    int varint_bits;
    int32_t headers_left;
    int32_t records_done;
    int32_t offset_delta; /* of the last record that had one */
    int64_t timestamp;

    /* What it found. */
    int64_t max_timestamp;
    int64_t min_timestamp;
    int32_t max_timestamp_delta;
    int32_t keyless_count;
} record_walk;

/* One record in a payload of one piece: positions, and sizes that are -1 for null. */
typedef struct {
    int64_t timestamp;
    int64_t key;
    int64_t value;
    int64_t headers;
    int64_t end;
    int32_t offset_delta;
    int32_t key_size;
    int32_t value_size;
    int32_t header_count;
} record_view;

typedef struct {
    int64_t key;
    int64_t value;
    int32_t key_size;
    int32_t value_size; /* -1 for null */
} header_view;

/* Begin; the result is WALK_FINE or what is wrong with the header. A produced batch has
 * consecutive offsets and at least one record; compaction leaves gaps and may leave no record. */
static inline int walk_begin(record_walk *w, int32_t record_count, int32_t last_offset_delta,
                             int64_t base_timestamp, int consecutive)
{
    memset(w, 0, sizeof *w);
    w->base_timestamp = base_timestamp;
    w->record_count = record_count;
    w->last_offset_delta = last_offset_delta;
    w->consecutive = consecutive;
    w->offset_delta = -1;
    w->max_timestamp = NO_TIMESTAMP;
    w->min_timestamp = INT64_MAX;
    w->max_timestamp_delta = -1;
    if (record_count < (consecutive ? 1 : 0))
        w->error = WALK_COUNT;
    else if (last_offset_delta < 0 || last_offset_delta < record_count - 1 ||
             (consecutive && last_offset_delta != record_count - 1))
        w->error = WALK_OFFSET_RANGE;
    if (w->error != WALK_FINE)
        w->state = AT_ERROR;
    return w->error;
}

static inline void walk_note_timestamp(record_walk *w)
{
    if (w->timestamp > w->max_timestamp) {
        w->max_timestamp = w->timestamp;
        w->max_timestamp_delta = w->offset_delta;
    }
    if (w->timestamp < w->min_timestamp && w->timestamp != NO_TIMESTAMP)
        w->min_timestamp = w->timestamp;
}

/* Stop until the next piece comes; `where` is the state to go on in. */
#define WALK_SUSPEND(where)                                                                        \
    do {                                                                                           \
        w->state = (where);                                                                        \
        w->position = position - size;                                                             \
        w->record_end = record_end - size;                                                         \
        w->varint = varint;                                                                        \
        w->varint_bits = varint_bits;                                                              \
        return WALK_MORE;                                                                          \
    } while (0)

#define WALK_FAIL(why)                                                                             \
    do {                                                                                           \
        w->state = AT_ERROR;                                                                       \
        w->error = (why);                                                                          \
        return WALK_BAD;                                                                           \
    } while (0)

/* Read a varint into `raw`, still zigzag; the walk goes on at `where` when it is cut.
 *
 * Nearly all are short and whole, and take the quick way. The other way, which is also where the
 * walk goes on, reads byte by byte, up to `bytes_max`; a bit that a value of `width` bits has no
 * room for is an error (Java drops it in silence). */
#define WALK_VARINT(where, width, bytes_max)                                                       \
    if (UNLIKELY(!varint_get_short(data, &position, limit, &raw))) {                               \
    case where:                                                                                    \
        for (;;) {                                                                                 \
            if (position >= record_end)                                                            \
                WALK_FAIL(WALK_FIELD);                                                             \
            if (position >= size)                                                                  \
                WALK_SUSPEND(where);                                                               \
            uint64_t byte = data[position++];                                                      \
            varint |= (byte & 0x7f) << varint_bits;                                                \
            if (byte < 0x80) {                                                                     \
                if (varint_bits == 7 * ((bytes_max) - 1) && byte >> ((width) - varint_bits) != 0)  \
                    WALK_FAIL(WALK_VARINT_LENGTH);                                                 \
                break;                                                                             \
            }                                                                                      \
            varint_bits += 7;                                                                      \
            if (varint_bits == 7 * (bytes_max))                                                    \
                WALK_FAIL(WALK_VARINT_LENGTH);                                                     \
        }                                                                                          \
        raw = varint;                                                                              \
        varint = 0;                                                                                \
        varint_bits = 0;                                                                           \
    }

#define WALK_VARINT32(where) WALK_VARINT(where, 32, VARINT32_BYTES_MAX)
#define WALK_VARINT64(where) WALK_VARINT(where, 64, VARINT64_BYTES_MAX)

/* What `raw` says of a length, a count or an offset delta, none of which is negative but for the
 * length -1, null. Without zigzag that is a bit and a shift. */
#define RAW_IS_NEGATIVE (raw & 1)
#define RAW_IS_NULL (raw == 1)
#define RAW_NUMBER ((int64_t)(raw >> 1))
#define RAW_SIZE (RAW_IS_NULL ? -1 : (int32_t)RAW_NUMBER)

/* Go over the bytes of a field whose length was read, or fail if they leave the record. */
#define WALK_OVER(why)                                                                             \
    do {                                                                                           \
        if (RAW_IS_NEGATIVE || RAW_NUMBER > record_end - position)                                 \
            WALK_FAIL(why);                                                                        \
        position += RAW_NUMBER;                                                                    \
    } while (0)

#define WALK_FALL_THROUGH __attribute__((fallthrough))

/* Walk to the end of the next record in data[0..size), or as far as the bytes go.
 *
 * `view` is filled on WALK_RECORD; it is for a payload in one piece, and in place of what the walk
 * finds about timestamps. On WALK_MORE all bytes are used, and the next call brings the next piece.
 *
 * Inlined into a loop over a local `record_walk`, the whole walk lives in registers: twice as fast
 * as through a pointer. */
__attribute__((always_inline)) static inline int walk_next(
    record_walk *w, const uint8_t *data, int64_t size, record_view *view)
{
    int64_t position = w->position, record_end = w->record_end;
    int64_t limit = record_end < size ? record_end : size; /* of the quick way */
    uint64_t raw, varint = w->varint;
    int varint_bits = w->varint_bits;

    switch (w->state) {
    case AT_START:
        record_end = INT64_MAX; /* known behind the length */
        limit = size;
        if (w->records_done == w->record_count) {
            if (position < size)
                WALK_FAIL(WALK_LEFT_OVER);
            WALK_SUSPEND(AT_START);
        }
        WALK_VARINT32(AT_LENGTH)
        if (RAW_IS_NEGATIVE || RAW_NUMBER < RECORD_BODY_SIZE_MIN)
            WALK_FAIL(WALK_RECORD_LENGTH);
        record_end = position + RAW_NUMBER;
        limit = record_end < size ? record_end : size;
        WALK_FALL_THROUGH;
    case AT_ATTRIBUTES:
        if (position >= size)
            WALK_SUSPEND(AT_ATTRIBUTES);
        position++;
        WALK_VARINT64(AT_TIMESTAMP)
        w->timestamp = wrapping_add(w->base_timestamp, unzigzag(raw));
        WALK_VARINT32(AT_OFFSET)
        if (RAW_IS_NEGATIVE || RAW_NUMBER <= w->offset_delta ||
            RAW_NUMBER > w->last_offset_delta ||
            (w->consecutive && RAW_NUMBER != w->records_done))
            WALK_FAIL(WALK_OFFSET_DELTA);
        w->offset_delta = (int32_t)RAW_NUMBER;
        if (!view)
            walk_note_timestamp(w);
        WALK_VARINT32(AT_KEY)
        if (view) {
            view->key = position;
            view->key_size = RAW_SIZE;
        }
        if (RAW_IS_NULL)
            w->keyless_count++;
        else
            WALK_OVER(WALK_KEY_LENGTH);
        WALK_VARINT32(AT_VALUE)
        if (view) {
            view->value = position;
            view->value_size = RAW_SIZE;
        }
        if (!RAW_IS_NULL)
            WALK_OVER(WALK_VALUE_LENGTH);
        WALK_VARINT32(AT_HEADER_COUNT)
        /* A header takes two bytes at least. */
        if (RAW_IS_NEGATIVE || RAW_NUMBER > (record_end - position) / 2)
            WALK_FAIL(WALK_HEADER_COUNT);
        if (view) {
            view->headers = position;
            view->header_count = (int32_t)RAW_NUMBER;
        }
        for (w->headers_left = (int32_t)RAW_NUMBER; w->headers_left > 0; w->headers_left--) {
            WALK_VARINT32(AT_HEADER_KEY)
            WALK_OVER(WALK_HEADER_KEY_LENGTH);
            WALK_VARINT32(AT_HEADER_VALUE)
            if (!RAW_IS_NULL)
                WALK_OVER(WALK_HEADER_VALUE_LENGTH);
        }
        if (position != record_end)
            WALK_FAIL(WALK_RECORD_SIZE);
        WALK_FALL_THROUGH;
    case AT_END:
        if (position > size)
            WALK_SUSPEND(AT_END);
        w->records_done++;
        w->state = AT_START;
        w->position = position;
        w->varint = 0;
        w->varint_bits = 0;
        if (view) {
            view->timestamp = w->timestamp;
            view->offset_delta = w->offset_delta;
            view->end = position;
        }
        return WALK_RECORD;
    default:
        return WALK_BAD;
    }
}

/* One header at `*position`, inside a record that walk_next has passed; 0 if it is not there. The
 * bounds are checked again: the bytes may belong to somebody who changes them meanwhile. */
static inline int header_next(const uint8_t *data, int64_t *position, int64_t end, header_view *h)
{
    int64_t size;
    if (!varint32_get(data, position, end, &size) || size < 0 || size > end - *position)
        return 0;
    h->key = *position;
    h->key_size = (int32_t)size;
    *position += size;
    if (!varint32_get(data, position, end, &size) || size < -1 || size > end - *position)
        return 0;
    h->value = *position;
    h->value_size = (int32_t)size;
    if (size > 0)
        *position += size;
    return 1;
}

/* Walk over a piece; the result is WALK_FINE or what is wrong with it. */
static inline int walk_piece(record_walk *w, const uint8_t *data, int64_t size)
{
    record_walk local = *w;
    while (walk_next(&local, data, size, NULL) == WALK_RECORD)
        ;
    *w = local;
    return w->error;
}

/* The last piece is through; the result is WALK_FINE or WALK_CUT_SHORT or the earlier error. */
static inline int walk_end(record_walk *w)
{
    if (w->error == WALK_FINE && (w->records_done < w->record_count || w->state != AT_START)) {
        w->state = AT_ERROR;
        w->error = WALK_CUT_SHORT;
    }
    return w->error;
}

#endif
