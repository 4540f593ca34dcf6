/* CRC-32C (Castagnoli): the processor's own instruction where it has one, tables otherwise.
 *
 * The choice is made at run time, so that one wheel serves every machine. The instruction takes
 * three cycles and can start every cycle: three parts of a block are summed side by side, and the
 * sums are joined by tables that move a checksum across a fixed number of zero bytes.
 */
#ifndef MOLDAU_CRC32C_H
#define MOLDAU_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define CRC32C_INSTRUCTION "sse4.2"
#elif defined(__aarch64__)
#define CRC32C_INSTRUCTION "armv8"
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#define CRC32C_POLYNOMIAL 0x82f63b78u /* bit-reversed */
#define CRC32C_LONG_LOG 12 /* bytes in each of three parts; both multiples of 8 */
#define CRC32C_LONG (1 << CRC32C_LONG_LOG)
#define CRC32C_SHORT_LOG 8
#define CRC32C_SHORT (1 << CRC32C_SHORT_LOG)
#define CRC32C_ZEROS 31 /* enough for 2 GiB */

static uint32_t crc32c_tables[8][256];
static uint32_t crc32c_zeros[CRC32C_ZEROS][32];
static uint32_t crc32c_skip_long[4][256];
static uint32_t crc32c_skip_short[4][256];
static int crc32c_in_hardware;

static inline uint64_t crc32c_load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* ---- tables: eight bytes a step ---- */

static void crc32c_make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (CRC32C_POLYNOMIAL & (0u - (crc & 1)));
        crc32c_tables[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++) {
            uint32_t before = crc32c_tables[k - 1][byte];
            crc32c_tables[k][byte] = (before >> 8) ^ crc32c_tables[0][before & 0xff];
        }
}

static uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *p, size_t size)
{
    const uint32_t(*t)[256] = (const uint32_t(*)[256])crc32c_tables;
    crc = ~crc;
    for (; size >= 8; p += 8, size -= 8) {
        /* Byte by byte, so that it works in either byte order. */
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                              (uint32_t)p[3] << 24);
        crc = t[7][low & 0xff] ^ t[6][(low >> 8) & 0xff] ^ t[5][(low >> 16) & 0xff] ^
              t[4][low >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
    }
    for (; size; p++, size--)
        crc = (crc >> 8) ^ t[0][(crc ^ *p) & 0xff];
    return ~crc;
}

/* ---- zeros: a checksum of bytes that others follow ---- */

/* A linear map of checksums as a bit matrix: column k is what bit k becomes. */
static uint32_t crc32c_apply(const uint32_t matrix[32], uint32_t crc)
{
    uint32_t sum = 0;
    for (int k = 0; crc; k++, crc >>= 1)
        if (crc & 1)
            sum ^= matrix[k];
    return sum;
}

/* Matrix n moves a checksum over 2 to the n zero bytes: each is the one before, applied twice. */
static void crc32c_make_zeros(void)
{
    for (int k = 0; k < 32; k++)
        crc32c_zeros[0][k] = k < 8 ? crc32c_tables[0][1u << k] : 1u << (k - 8);
    for (int n = 1; n < CRC32C_ZEROS; n++)
        for (int k = 0; k < 32; k++)
            crc32c_zeros[n][k] = crc32c_apply(crc32c_zeros[n - 1], crc32c_zeros[n - 1][k]);
}

/* ---- the instruction, three streams at a time ---- */

#if defined(CRC32C_INSTRUCTION)

static void crc32c_make_skip(uint32_t tables[4][256], const uint32_t matrix[32])
{
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 0; k < 4; k++)
            tables[k][byte] = crc32c_apply(matrix, byte << (8 * k));
}

static inline uint32_t crc32c_skip(uint32_t tables[4][256], uint32_t crc)
{
    return tables[0][crc & 0xff] ^ tables[1][(crc >> 8) & 0xff] ^ tables[2][(crc >> 16) & 0xff] ^
           tables[3][crc >> 24];
}

/* Assembly, because compilers disagree on how one function asks for one instruction. */
#if defined(__x86_64__)

static inline uint32_t crc32c_step8(uint32_t crc, uint64_t x)
{
    uint64_t sum = crc;
    __asm__("crc32q %1, %0" : "+r"(sum) : "r"(x));
    return (uint32_t)sum;
}

static inline uint32_t crc32c_step1(uint32_t crc, uint8_t x)
{
    __asm__("crc32b %1, %0" : "+r"(crc) : "q"(x));
    return crc;
}

static int crc32c_detect(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 20)) != 0; /* SSE4.2 */
}

#else

static inline uint32_t crc32c_step8(uint32_t crc, uint64_t x)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(x));
    return crc;
}

static inline uint32_t crc32c_step1(uint32_t crc, uint8_t x)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)x));
    return crc;
}

static int crc32c_detect(void)
{
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & (1ul << 7)) != 0; /* HWCAP_CRC32 */
#else
    return 1; /* every Apple processor of this kind */
#endif
}

#endif

/* Sum blocks of three parts of `part` bytes each while they last. */
static inline uint32_t crc32c_blocks(
    uint32_t crc, const uint8_t **p, size_t *size, size_t part, uint32_t skip[4][256])
{
    while (*size >= 3 * part) {
        uint32_t second = 0, third = 0;
        const uint8_t *q = *p;
        for (size_t i = 0; i < part; i += 8) {
            crc = crc32c_step8(crc, crc32c_load64(q + i));
            second = crc32c_step8(second, crc32c_load64(q + part + i));
            third = crc32c_step8(third, crc32c_load64(q + 2 * part + i));
        }
        crc = crc32c_skip(skip, crc) ^ second;
        crc = crc32c_skip(skip, crc) ^ third;
        *p += 3 * part;
        *size -= 3 * part;
    }
    return crc;
}

static uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
    crc = ~crc;
    crc = crc32c_blocks(crc, &p, &size, CRC32C_LONG, crc32c_skip_long);
    crc = crc32c_blocks(crc, &p, &size, CRC32C_SHORT, crc32c_skip_short);
    for (; size >= 8; p += 8, size -= 8)
        crc = crc32c_step8(crc, crc32c_load64(p));
    for (; size; p++, size--)
        crc = crc32c_step1(crc, *p);
    return ~crc;
}

#endif

/* Call once, when the module is imported. */
static void crc32c_initialize(void)
{
    crc32c_make_tables();
    crc32c_make_zeros();
#if defined(CRC32C_INSTRUCTION)
    crc32c_make_skip(crc32c_skip_long, crc32c_zeros[CRC32C_LONG_LOG]);
    crc32c_make_skip(crc32c_skip_short, crc32c_zeros[CRC32C_SHORT_LOG]);
    crc32c_in_hardware = crc32c_detect();
#endif
}

static inline const char *crc32c_implementation(void)
{
#if defined(CRC32C_INSTRUCTION)
    if (crc32c_in_hardware)
        return CRC32C_INSTRUCTION;
#endif
    return "tables";
}

/* The checksum of `size` bytes that follow bytes whose checksum is `crc` (0 at the start). */
static inline uint32_t crc32c_update(uint32_t crc, const uint8_t *p, size_t size)
{
#if defined(CRC32C_INSTRUCTION)
    if (crc32c_in_hardware)
        return crc32c_by_instruction(crc, p, size);
#endif
    return crc32c_by_tables(crc, p, size);
}

/* The checksum of bytes that had `crc` before some of them changed: `difference` is what was there
 * XOR what is there now, and `behind` it less than 2 GiB stay as they are. Sums are linear, so these
 * need not be read again. */
static inline uint32_t crc32c_change(uint32_t crc, const uint8_t *difference, size_t size,
                                     size_t behind)
{
    /* From zero to zero: without the inversions at both ends, which only a whole sum has. */
    uint32_t change = ~crc32c_update(~0u, difference, size);
    for (int n = 0; behind; n++, behind >>= 1)
        if (behind & 1)
            change = crc32c_apply(crc32c_zeros[n], change);
    return crc ^ change;
}

#endif
