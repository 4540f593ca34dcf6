/* Compaction's second pass: which records of a batch stay, and the segment that they go to.
 *
 * Kept records are copied byte for byte: the batch keeps its base offset, its base timestamp, the
 * range of its offsets, and with them every delta. Only where a delete horizon moves into the base
 * timestamp (KIP-534) are timestamps written anew.
 */
#ifndef MOLDAU_SIEVE_H
#define MOLDAU_SIEVE_H

#include <stdint.h>
#include <string.h>

#include "batch.h"
#include "encode.h"
#include "key_map.h"
#include "walk.h"

enum sieve_result { SIEVE_NONE, SIEVE_SOME, SIEVE_ALL, SIEVE_BAD_RECORD, SIEVE_NO_MEMORY };

typedef struct {
    /* What decides. */
    const key_map *keys;
    int64_t end_offset; /* of what the keys were collected from; everything behind it stays */
    int64_t now_ms;
    int64_t delete_retention_ms;
    int64_t *needed; /* last offsets of batches that stay even if they are empty, ascending */
    int64_t needed_count;
    int64_t needed_next;

    /* The segment that is written. */
    int64_t base_offset;
    int64_t position; /* bytes of the log that went out already */
    int64_t index_interval_bytes;
    int64_t unindexed_bytes;
    int64_t max_timestamp;
    int64_t max_timestamp_offset;
    int64_t indexed_timestamp;
    int64_t last_offset; /* of the last batch, -1: nothing was written */
    byte_buffer log;
    byte_buffer offset_index;
    byte_buffer time_index;
    byte_buffer scratch;

    /* The batch at hand stands behind the log's bytes, with room for its header. */
    batch_header batch;
    int64_t payload_size;
    record_walk walk;

    int64_t records_read;
    int64_t records_kept;
    int64_t records_keyless;
} sieve;

static inline uint8_t *sieve_payload(const sieve *s)
{
    return s->log.data + s->log.size + BATCH_HEADER_SIZE;
}

static inline int sieve_is_needed(sieve *s, int64_t last_offset)
{
    while (s->needed_next < s->needed_count && s->needed[s->needed_next] < last_offset)
        s->needed_next++;
    return s->needed_next < s->needed_count && s->needed[s->needed_next] == last_offset;
}

/* Add an entry unless the index has this timestamp; an entry always fits. */
static inline int sieve_index_time(sieve *s)
{
    uint8_t entry[12];
    if (s->max_timestamp <= s->indexed_timestamp)
        return 1;
    s->indexed_timestamp = s->max_timestamp;
    store_be64(entry, (uint64_t)s->max_timestamp);
    store_be32(entry + 8, (uint32_t)(s->max_timestamp_offset - s->base_offset));
    return buffer_append(&s->time_index, entry, sizeof entry);
}

/* The batch at hand is complete, `size` bytes with its header: move it into the log. */
static inline int sieve_commit(sieve *s, int64_t size)
{
    const batch_header *b = &s->batch;
    int64_t last_offset = wrapping_add(b->base_offset, b->last_offset_delta);
    if (b->max_timestamp > s->max_timestamp) {
        s->max_timestamp = b->max_timestamp;
        s->max_timestamp_offset = last_offset;
    }
    if (s->unindexed_bytes > s->index_interval_bytes) {
        uint8_t entry[8];
        store_be32(entry, (uint32_t)(last_offset - s->base_offset));
        store_be32(entry + 4, (uint32_t)(s->position + (int64_t)s->log.size));
        if (!buffer_append(&s->offset_index, entry, sizeof entry) || !sieve_index_time(s))
            return 0;
        s->unindexed_bytes = 0;
    }
    s->unindexed_bytes += size;
    s->log.size += (size_t)size;
    s->last_offset = last_offset;
    s->records_kept += b->record_count;
    return 1;
}

/* Write a batch as it is. */
static inline int sieve_copy(sieve *s, const uint8_t *data, const batch_header *header)
{
    if (!buffer_reserve(&s->log, (size_t)header->size))
        return 0;
    memcpy(s->log.data + s->log.size, data, (size_t)header->size);
    s->batch = *header;
    return sieve_commit(s, header->size);
}

/* Write the batch at hand with whatever payload stands behind its header by now. */
static inline int sieve_write(sieve *s)
{
    s->batch.size = BATCH_HEADER_SIZE + s->payload_size;
    batch_write(s->log.data + s->log.size, &s->batch);
    return sieve_commit(s, s->batch.size);
}

/* Write a batch without its records: it carries the producer's last sequence number, or the last
 * offset of a range. */
static inline int sieve_empty(sieve *s, const batch_header *header)
{
    if (!buffer_reserve(&s->log, BATCH_HEADER_SIZE))
        return 0;
    s->batch = *header;
    s->batch.attributes &= ~(ATTRIBUTE_CODEC | ATTRIBUTE_DELETE_HORIZON);
    s->batch.base_timestamp = NO_TIMESTAMP;
    s->batch.record_count = 0;
    s->payload_size = 0;
    return sieve_write(s);
}

static inline slice sieve_slice(const uint8_t *data, int64_t position, int32_t size)
{
    slice s = {data + position, size};
    return s;
}

/* Put `base_timestamp` into the batch at hand as its delete horizon: every timestamp is written
 * anew, relative to it. */
static int sieve_set_horizon(sieve *s, int64_t base_timestamp)
{
    const uint8_t *payload;
    record_walk walk;
    record_view view;
    walk_begin(&walk, s->batch.record_count, s->batch.last_offset_delta, s->batch.base_timestamp, 0);
    s->scratch.size = 0;
    payload = sieve_payload(s);
    while (walk_next(&walk, payload, s->payload_size, &view) == WALK_RECORD) {
        record_fields fields = {
            .timestamp_delta = wrapping_subtract(view.timestamp, base_timestamp),
            .offset_delta = view.offset_delta,
            .key = sieve_slice(payload, view.key, view.key_size),
            .value = sieve_slice(payload, view.value, view.value_size),
            .header_count = view.header_count,
            .headers_size = view.end - view.headers,
        };
        int64_t body = record_body_size(&fields);
        if (!buffer_reserve(&s->scratch, (size_t)(body + VARINT32_BYTES_MAX)))
            return 0;
        uint8_t *start = s->scratch.data + s->scratch.size;
        uint8_t *p = record_put(start, &fields, body);
        memcpy(p, payload + view.headers, (size_t)fields.headers_size);
        s->scratch.size += (size_t)(p - start + fields.headers_size);
    }
    s->payload_size = (int64_t)s->scratch.size;
    if (!buffer_reserve(&s->log, (size_t)(BATCH_HEADER_SIZE + s->payload_size)))
        return 0;
    memcpy(sieve_payload(s), s->scratch.data, s->scratch.size);
    s->batch.base_timestamp = base_timestamp;
    s->batch.attributes |= ATTRIBUTE_DELETE_HORIZON;
    return 1;
}

static inline int sieve_keeps(const sieve *s, const record_view *view, hash128 hash,
                              int64_t offset, int drop_tombstones)
{
    if (offset >= s->end_offset)
        return 1;
    if (view->key_size < 0 || (view->value_size < 0 && drop_tombstones))
        return 0;
    return offset >= key_map_find(s->keys, hash);
}

/* Sift the records of a batch; what stays becomes the batch at hand, not yet compressed.
 *
 * SIEVE_ALL: the batch can be copied as it is. On SIEVE_SOME, `batch` is complete but for its size.
 * On SIEVE_BAD_RECORD, `walk` says what is wrong. */
static int sieve_sift(sieve *s, const batch_header *header, const uint8_t *payload, int64_t size)
{
    record_view views[KEYS_IN_FLIGHT];
    hash128 hashes[KEYS_IN_FLIGHT];
    record_walk walk;
    int has_horizon = (header->attributes & ATTRIBUTE_DELETE_HORIZON) != 0;
    int drop_tombstones = has_horizon && header->base_timestamp <= s->now_ms;
    int more = 1, tombstones = 0;
    int32_t kept = 0;
    int64_t start = 0, max_timestamp = NO_TIMESTAMP;

    if (!buffer_reserve(&s->log, (size_t)(BATCH_HEADER_SIZE + size)))
        return SIEVE_NO_MEMORY;
    uint8_t *out = sieve_payload(s);
    walk_begin(&walk, header->record_count, header->last_offset_delta, header->base_timestamp, 0);
    while (more) {
        int count = 0;
        while (count < KEYS_IN_FLIGHT &&
               (more = walk_next(&walk, payload, size, &views[count]) == WALK_RECORD)) {
            record_view *view = &views[count];
            if (view->key_size >= 0) {
                hashes[count] = siphash128(s->keys->secret, payload + view->key, view->key_size);
                __builtin_prefetch(key_map_home(s->keys, hashes[count]), 0);
            }
            count++;
        }
        for (int i = 0; i < count; i++) {
            const record_view *view = &views[i];
            int64_t offset = wrapping_add(header->base_offset, view->offset_delta);
            if (sieve_keeps(s, view, hashes[i], offset, drop_tombstones)) {
                memcpy(out, payload + start, (size_t)(view->end - start));
                out += view->end - start;
                kept++;
                tombstones |= view->value_size < 0;
                if (view->timestamp > max_timestamp)
                    max_timestamp = view->timestamp;
            }
            start = view->end;
        }
    }
    if (walk_end(&walk) != WALK_FINE) {
        s->walk = walk;
        return SIEVE_BAD_RECORD;
    }
    s->records_read += header->record_count;
    s->records_keyless += walk.keyless_count;

    /* A tombstone's time begins when all older records of its key are gone, so not yet for a batch
     * that the keys were not all collected from. */
    int64_t last_offset = wrapping_add(header->base_offset, header->last_offset_delta);
    int set_horizon = tombstones && !has_horizon && last_offset < s->end_offset;
    if (kept == 0)
        return SIEVE_NONE;
    if (kept == header->record_count && !set_horizon)
        return SIEVE_ALL;
    s->batch = *header;
    s->batch.record_count = kept;
    if (!(header->attributes & ATTRIBUTE_LOG_APPEND_TIME))
        s->batch.max_timestamp = max_timestamp;
    s->payload_size = out - sieve_payload(s);
    if (set_horizon && !sieve_set_horizon(s, wrapping_add(s->now_ms, s->delete_retention_ms)))
        return SIEVE_NO_MEMORY;
    return SIEVE_SOME;
}

/* Sift an uncompressed data batch and write what stays of it. */
static inline int sieve_batch(sieve *s, const uint8_t *data, const batch_header *header)
{
    int result = sieve_sift(s, header, data + BATCH_HEADER_SIZE, header->size - BATCH_HEADER_SIZE);
    int64_t last_offset = wrapping_add(header->base_offset, header->last_offset_delta);
    int written = 1;
    if (result == SIEVE_ALL)
        written = sieve_copy(s, data, header);
    else if (result == SIEVE_SOME)
        written = sieve_write(s);
    else if (result == SIEVE_NONE && sieve_is_needed(s, last_offset))
        written = sieve_empty(s, header);
    return written ? result : SIEVE_NO_MEMORY;
}

#endif
