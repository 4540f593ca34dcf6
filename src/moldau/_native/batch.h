/* The header of a v2 record batch: layout, reading, framing checks. */
#ifndef MOLDAU_BATCH_H
#define MOLDAU_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire.h"
#include "crc32c.h"

enum {
    BATCH_BASE_OFFSET = 0,
    BATCH_LENGTH = 8, /* of what follows it */
    BATCH_LEADER_EPOCH = 12,
    BATCH_MAGIC = 16,
    BATCH_CRC = 17,
    BATCH_ATTRIBUTES = 21, /* the checksum covers this and everything behind it */
    BATCH_LAST_OFFSET_DELTA = 23,
    BATCH_BASE_TIMESTAMP = 27,
    BATCH_MAX_TIMESTAMP = 35,
    BATCH_PRODUCER_ID = 43,
    BATCH_PRODUCER_EPOCH = 51,
    BATCH_BASE_SEQUENCE = 53,
    BATCH_RECORD_COUNT = 57,
    BATCH_HEADER_SIZE = 61
};

enum {
    ATTRIBUTE_CODEC = 0x07,
    ATTRIBUTE_LOG_APPEND_TIME = 0x08,
    ATTRIBUTE_TRANSACTIONAL = 0x10,
    ATTRIBUTE_CONTROL = 0x20,
    ATTRIBUTE_DELETE_HORIZON = 0x40
};

typedef struct {
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int64_t size; /* of the whole batch */
    int32_t leader_epoch;
    int32_t last_offset_delta;
    int32_t base_sequence;
    int32_t record_count;
    uint32_t crc;
    int16_t attributes;
    int16_t producer_epoch;
} batch_header;

enum batch_status { BATCH_WHOLE, BATCH_PARTIAL, BATCH_BAD_LENGTH, BATCH_BAD_MAGIC, BATCH_BAD_CRC };

/* Read the header at `p`, of which `available` bytes may be looked at.
 *
 * The magic byte is judged before the length, because the older formats have shorter batches and
 * "magic 1" says more than "bad length". */
static inline int batch_read(const uint8_t *p, int64_t available, batch_header *h)
{
    if (available > BATCH_MAGIC && p[BATCH_MAGIC] != 2)
        return BATCH_BAD_MAGIC;
    if (available < BATCH_LEADER_EPOCH)
        return BATCH_PARTIAL;
    h->size = (int64_t)(int32_t)load_be32(p + BATCH_LENGTH) + BATCH_LEADER_EPOCH;
    if (h->size < BATCH_HEADER_SIZE)
        return BATCH_BAD_LENGTH;
    if (available < h->size)
        return BATCH_PARTIAL;
    h->base_offset = (int64_t)load_be64(p + BATCH_BASE_OFFSET);
    h->leader_epoch = (int32_t)load_be32(p + BATCH_LEADER_EPOCH);
    h->crc = load_be32(p + BATCH_CRC);
    h->attributes = (int16_t)load_be16(p + BATCH_ATTRIBUTES);
    h->last_offset_delta = (int32_t)load_be32(p + BATCH_LAST_OFFSET_DELTA);
    h->base_timestamp = (int64_t)load_be64(p + BATCH_BASE_TIMESTAMP);
    h->max_timestamp = (int64_t)load_be64(p + BATCH_MAX_TIMESTAMP);
    h->producer_id = (int64_t)load_be64(p + BATCH_PRODUCER_ID);
    h->producer_epoch = (int16_t)load_be16(p + BATCH_PRODUCER_EPOCH);
    h->base_sequence = (int32_t)load_be32(p + BATCH_BASE_SEQUENCE);
    h->record_count = (int32_t)load_be32(p + BATCH_RECORD_COUNT);
    return BATCH_WHOLE;
}

/* The checksum of a whole batch of `size` bytes. */
static inline uint32_t batch_crc(const uint8_t *p, int64_t size)
{
    return crc32c_update(0, p + BATCH_ATTRIBUTES, (size_t)(size - BATCH_ATTRIBUTES));
}

/* Write every field at `p` but the checksum; h->size is the whole batch's. */
static inline void batch_write_fields(uint8_t *p, const batch_header *h)
{
    store_be64(p + BATCH_BASE_OFFSET, (uint64_t)h->base_offset);
    store_be32(p + BATCH_LENGTH, (uint32_t)(h->size - BATCH_LEADER_EPOCH));
    store_be32(p + BATCH_LEADER_EPOCH, (uint32_t)h->leader_epoch);
    p[BATCH_MAGIC] = 2;
    store_be16(p + BATCH_ATTRIBUTES, (uint16_t)h->attributes);
    store_be32(p + BATCH_LAST_OFFSET_DELTA, (uint32_t)h->last_offset_delta);
    store_be64(p + BATCH_BASE_TIMESTAMP, (uint64_t)h->base_timestamp);
    store_be64(p + BATCH_MAX_TIMESTAMP, (uint64_t)h->max_timestamp);
    store_be64(p + BATCH_PRODUCER_ID, (uint64_t)h->producer_id);
    store_be16(p + BATCH_PRODUCER_EPOCH, (uint16_t)h->producer_epoch);
    store_be32(p + BATCH_BASE_SEQUENCE, (uint32_t)h->base_sequence);
    store_be32(p + BATCH_RECORD_COUNT, (uint32_t)h->record_count);
}

/* Write every field at `p`, the checksum over header and payload included: the payload stands behind
 * the header already, and h->crc is ignored. */
static inline void batch_write(uint8_t *p, const batch_header *h)
{
    batch_write_fields(p, h);
    store_be32(p + BATCH_CRC, batch_crc(p, h->size));
}

/* Write another header in front of the same payload; h->crc is right for the one that is there. */
static inline void batch_rewrite(uint8_t *p, const batch_header *h)
{
    uint8_t difference[BATCH_HEADER_SIZE - BATCH_ATTRIBUTES];
    memcpy(difference, p + BATCH_ATTRIBUTES, sizeof difference);
    batch_write_fields(p, h);
    for (size_t i = 0; i < sizeof difference; i++)
        difference[i] ^= p[BATCH_ATTRIBUTES + i];
    size_t payload_size = (size_t)(h->size - BATCH_HEADER_SIZE);
    store_be32(p + BATCH_CRC, crc32c_change(h->crc, difference, sizeof difference, payload_size));
}

/* Arithmetic on offsets and timestamps wraps, as Java's does: hostile numbers stay numbers. */
static inline int64_t wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrapping_subtract(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

#endif
