/* UTF-8: Arrow's strings must be valid, Kafka's header keys need not be. */
#ifndef MOLDAU_UTF8_H
#define MOLDAU_UTF8_H

#include <stdint.h>

#include "encode.h"

/* The number of bytes of the next character of `p`, where at least one byte is left. When they are
 * no character, *valid is 0 and the number is that of the bytes which one U+FFFD stands for: all
 * that could begin a character (as Python and Java do; Unicode's table 3-7 has the ranges). */
static inline int64_t utf8_next(const uint8_t *p, int64_t left, int *valid)
{
    uint8_t first = p[0], low = 0x80, high = 0xbf;
    int64_t size;
    *valid = first < 0x80;
    if (first < 0xc2 || first > 0xf4)
        return 1;
    if (first < 0xe0) {
        size = 2;
    } else if (first < 0xf0) {
        size = 3;
        low = first == 0xe0 ? 0xa0 : 0x80;  /* no overlong forms */
        high = first == 0xed ? 0x9f : 0xbf; /* no surrogates */
    } else {
        size = 4;
        low = first == 0xf0 ? 0x90 : 0x80;
        high = first == 0xf4 ? 0x8f : 0xbf; /* nothing behind U+10FFFF */
    }
    for (int64_t k = 1; k < size; k++) {
        if (k == left || p[k] < low || p[k] > high)
            return k;
        low = 0x80;
        high = 0xbf;
    }
    *valid = 1;
    return size;
}

/* Append `size` bytes of text; what is not UTF-8 becomes U+FFFD. 0 when there is no memory. */
static inline int utf8_append(byte_buffer *b, const uint8_t *p, int64_t size)
{
    int64_t start = 0, position = 0;
    while (position < size) {
        int valid;
        int64_t length = utf8_next(p + position, size - position, &valid);
        if (!valid) {
            if (!buffer_append(b, p + start, (size_t)(position - start)) ||
                !buffer_append(b, (const uint8_t *)"\xef\xbf\xbd", 3))
                return 0;
            start = position + length;
        }
        position += length;
    }
    return buffer_append(b, p + start, (size_t)(size - start));
}

#endif
