/* What the machine itself does: write, read, or read and check a file, and nothing else.
 *
 * log_io write PATH SIZE COUNT        write() SIZE bytes COUNT times
 * log_io read PATH SIZE COUNT STEP    pread() SIZE bytes every STEP bytes of the file, COUNT times
 * log_io check PATH SIZE COUNT        the same, and the checksum of every batch of SIZE
 *
 * Prints the seconds that it took. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    size_t size = strtoul(argv[3], NULL, 10);
    uint8_t *buffer = aligned_alloc(4096, (size + 4095) & ~(size_t)4095); /* as ours */
    long count = atol(argv[4]);
    off_t step = argc > 5 ? atol(argv[5]) : (off_t)size;
    double start;
    if (!strcmp(argv[1], "write")) {
        memset(buffer, 1, size);
        start = now(); /* ours makes its files while the clock runs, too */
        int fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        while (count--)
            if (write(fd, buffer, size) != (ssize_t)size)
                fail("write");
    } else {
        int fd = open(argv[2], O_RDONLY);
        int checks = !strcmp(argv[1], "check");
        ssize_t got;
        crc32c_initialize();
        memset(buffer, 1, size);
        start = now();
        while (count--) {
            for (off_t at = 0; (got = pread(fd, buffer, size, at)) > 0; at += step)
                if (checks && got == (ssize_t)size &&
                    batch_crc(buffer, got) != load_be32(buffer + BATCH_CRC))
                    fail("checksum");
            if (got < 0)
                fail("pread");
        }
    }
    printf("%.9f\n", now() - start);
    return 0;
}
