/* Kafka's wire primitives: big-endian numbers and unsigned varints. */

#ifndef MOLDAU_WIRE_H
#define MOLDAU_WIRE_H

#include <stdint.h>
#include <string.h>

/* Written as shifts: compilers turn each into one load and one byte swap, on any machine. */

static inline uint16_t load_be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load_be64(const uint8_t *p)
{
    return (uint64_t)load_be32(p) << 32 | load_be32(p + 4);
}

static inline double load_be_double(const uint8_t *p)
{
    uint64_t bits = load_be64(p);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void store_be16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void store_be64(uint8_t *p, uint64_t v)
{
    store_be32(p, (uint32_t)(v >> 32));
    store_be32(p + 4, (uint32_t)v);
}

static inline void store_be_double(uint8_t *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    store_be64(p, bits);
}

#define UVARINT32_BYTES_MAX 5
#define UVARINT_TRUNCATED (-1)
#define UVARINT_TOO_LONG (-2)

/* Returns how many bytes the number takes, or one of the two errors above. */
static inline int load_uvarint32(const uint8_t *p, const uint8_t *end, uint32_t *value)
{
    uint32_t result = 0;
    for (int i = 0; i < UVARINT32_BYTES_MAX; i++) {
        if (p + i >= end) return UVARINT_TRUNCATED;
        uint8_t byte = p[i];
        if (i == UVARINT32_BYTES_MAX - 1 && byte > 0x0f) return UVARINT_TOO_LONG;
        result |= (uint32_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = result;
            return i + 1;
        }
    }
    return UVARINT_TOO_LONG;
}

static inline int uvarint32_size(uint32_t value)
{
    int size = 1;
    while (value >= 0x80) {
        value >>= 7;
        size++;
    }
    return size;
}

/* Needs up to five bytes of room; returns how many it took. */
static inline int store_uvarint32(uint8_t *p, uint32_t value)
{
    int i = 0;
    while (value >= 0x80) {
        p[i++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    p[i++] = (uint8_t)value;
    return i;
}

#endif
