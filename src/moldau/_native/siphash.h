/* SipHash-2-4 with 128 bits of output: a keyed hash that nobody without the key can steer. */
#ifndef MOLDAU_SIPHASH_H
#define MOLDAU_SIPHASH_H

#include <stdint.h>
#include <string.h>

#include "wire.h"

typedef struct {
    uint64_t low;
    uint64_t high;
} hash128;

static inline uint64_t sip_load(const uint8_t *p) /* little-endian */
{
    return __builtin_bswap64(load_be64(p));
}

static inline uint64_t sip_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

#define SIP_ROUND                                                                                  \
    do {                                                                                           \
        v0 += v1;                                                                                  \
        v2 += v3;                                                                                  \
        v1 = sip_rotate(v1, 13) ^ v0;                                                              \
        v3 = sip_rotate(v3, 16) ^ v2;                                                              \
        v0 = sip_rotate(v0, 32) + v3;                                                              \
        v2 += v1;                                                                                  \
        v3 = sip_rotate(v3, 21) ^ v0;                                                              \
        v1 = sip_rotate(v1, 17) ^ v2;                                                              \
        v2 = sip_rotate(v2, 32);                                                                   \
    } while (0)

static inline hash128 siphash128(hash128 key, const uint8_t *data, int64_t size)
{
    uint64_t v0 = key.low ^ 0x736f6d6570736575u, v1 = key.high ^ 0x646f72616e646f6du ^ 0xee;
    uint64_t v2 = key.low ^ 0x6c7967656e657261u, v3 = key.high ^ 0x7465646279746573u;
    uint64_t word = (uint64_t)size << 56; /* the last one: what is left, and the size */
    hash128 hash;

    const uint8_t *end = data + (size & ~(int64_t)7);
    for (; data < end; data += 8) {
        uint64_t whole = sip_load(data);
        v3 ^= whole;
        SIP_ROUND;
        SIP_ROUND;
        v0 ^= whole;
    }
    for (int i = 0; i < (size & 7); i++)
        word |= (uint64_t)data[i] << 8 * i;
    v3 ^= word;
    SIP_ROUND;
    SIP_ROUND;
    v0 ^= word;

    v2 ^= 0xee;
    SIP_ROUND;
    SIP_ROUND;
    SIP_ROUND;
    SIP_ROUND;
    hash.low = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    SIP_ROUND;
    SIP_ROUND;
    SIP_ROUND;
    SIP_ROUND;
    hash.high = v0 ^ v1 ^ v2 ^ v3;
    return hash;
}

#undef SIP_ROUND

#endif
