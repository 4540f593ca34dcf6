/* MurmurHash2 of a key, with Kafka's seed: which partition it goes to is known to every client. */
#ifndef MOLDAU_MURMUR2_H
#define MOLDAU_MURMUR2_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t murmur2(const uint8_t *data, size_t size)
{
    const uint32_t m = 0x5bd1e995;
    uint32_t h = 0x9747b28c ^ (uint32_t)size;
    for (; size >= 4; data += 4, size -= 4) {
        uint32_t k = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                     (uint32_t)data[3] << 24;
        k *= m;
        k ^= k >> 24;
        h = h * m ^ k * m;
    }
    if (size >= 3)
        h ^= (uint32_t)data[2] << 16;
    if (size >= 2)
        h ^= (uint32_t)data[1] << 8;
    if (size >= 1)
        h = (h ^ data[0]) * m;
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}

/* Java's remainder of the hash without its sign. */
static inline int32_t murmur2_partition(const uint8_t *data, size_t size, int32_t partition_count)
{
    return (int32_t)((murmur2(data, size) & 0x7fffffff) % (uint32_t)partition_count);
}

#endif
