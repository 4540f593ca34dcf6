/* Big-endian numbers at any address: Kafka's byte order, without unaligned access. */
#ifndef MOLDAU_BIGENDIAN_H
#define MOLDAU_BIGENDIAN_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define MOLDAU_SWAP16(x) (x)
#define MOLDAU_SWAP32(x) (x)
#define MOLDAU_SWAP64(x) (x)
#else
#define MOLDAU_SWAP16(x) __builtin_bswap16(x)
#define MOLDAU_SWAP32(x) __builtin_bswap32(x)
#define MOLDAU_SWAP64(x) __builtin_bswap64(x)
#endif

static inline uint16_t load_be16(const uint8_t *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return MOLDAU_SWAP16(x);
}

static inline uint32_t load_be32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return MOLDAU_SWAP32(x);
}

static inline uint64_t load_be64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return MOLDAU_SWAP64(x);
}

static inline void store_be16(uint8_t *p, uint16_t x)
{
    x = MOLDAU_SWAP16(x);
    memcpy(p, &x, sizeof x);
}

static inline void store_be32(uint8_t *p, uint32_t x)
{
    x = MOLDAU_SWAP32(x);
    memcpy(p, &x, sizeof x);
}

static inline void store_be64(uint8_t *p, uint64_t x)
{
    x = MOLDAU_SWAP64(x);
    memcpy(p, &x, sizeof x);
}

#endif
