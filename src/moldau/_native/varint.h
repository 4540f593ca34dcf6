/* Zigzag varints: how record batches write lengths, deltas and counts. */
#ifndef MOLDAU_VARINT_H
#define MOLDAU_VARINT_H

#include <stdint.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define VARINT32_BYTES_MAX 5
#define VARINT64_BYTES_MAX 10

static inline uint64_t zigzag(int64_t x)
{
    return ((uint64_t)x << 1) ^ (0 - (uint64_t)(x < 0));
}

static inline int64_t unzigzag(uint64_t x)
{
    return (int64_t)((x >> 1) ^ (0 - (x & 1)));
}

static inline int varint_size(int64_t x)
{
    uint64_t u = zigzag(x) | 1; /* zero takes a byte as well */
    return (63 - __builtin_clzll(u)) / 7 + 1;
}

/* Write `x` at `p`, where varint_size(x) bytes are free; return the place behind it. */
static inline uint8_t *varint_put(uint8_t *p, int64_t x)
{
    uint64_t u = zigzag(x);
    for (; u >= 0x80; u >>= 7)
        *p++ = (uint8_t)(u | 0x80);
    *p++ = (uint8_t)u;
    return p;
}

/* Read a varint of one or two bytes at data[*position], before `limit`; 0 if it is not one. `raw`
 * is still zigzag. */
static inline int varint_get_short(const uint8_t *data, int64_t *position, int64_t limit,
                                   uint64_t *raw)
{
    int64_t p = *position;
    if (UNLIKELY(p >= limit))
        return 0;
    uint64_t u = data[p];
    if (u >= 0x80) {
        if (UNLIKELY(limit - p < 2 || data[p + 1] >= 0x80))
            return 0;
        u = (u & 0x7f) | (uint64_t)data[++p] << 7;
    }
    *position = p + 1;
    *raw = u;
    return 1;
}

/* Read a 32-bit varint at data[*position], before `end`; 0 if there is none. */
static inline int varint32_get(const uint8_t *data, int64_t *position, int64_t end, int64_t *number)
{
    uint64_t u = 0;
    for (int bits = 0; bits < 7 * VARINT32_BYTES_MAX && *position < end; bits += 7) {
        uint64_t byte = data[(*position)++];
        u |= (byte & 0x7f) << bits;
        if (byte < 0x80) {
            *number = unzigzag(u);
            return u <= UINT32_MAX;
        }
    }
    return 0;
}

#endif
