/* A load generator that costs next to nothing, so that what is measured is the broker.
 *
 * raw_load produce PORT TOPIC PARTITIONS CONNECTIONS IN_FLIGHT ACKS SECONDS REQUESTS BATCH
 *     sends the batch in the file BATCH, one per request, until SECONDS have passed or REQUESTS are sent
 * raw_load fetch PORT TOPIC PARTITIONS CONNECTIONS 1 BYTES SECONDS REQUESTS BATCH RECORDS END
 *     fetches up to BYTES of partitions that were filled with BATCH, of RECORDS each, up to END
 * raw_load relay PORT TOPIC SECONDS BATCH
 *     sends BATCH with acks=all, and again when a long poll on a second connection has received it
 * raw_load hostile PORT COUNT SEED
 *     COUNT connections, each with a frame that no client sends
 *
 * One thread, one epoll, no allocation once it runs. Connections take the partitions in turn. Prints
 * the requests, the bytes of batches, the seconds, and the latencies in microseconds: p50, p99, max. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

enum {
    HEAD = 512,           /* bytes of a response that are looked at */
    IN_FLIGHT_MAX = 64,
    LATENCY_MAX = 1 << 20, /* microseconds; what is slower counts as this */
    SCRATCH = 1 << 20,
    CORRELATION = 8, /* where a request has its number, after the size, the API and its version */
    PRODUCE = 0,
    FETCH = 1
};

typedef struct {
    int fd, partition;
    uint8_t request[HEAD]; /* all of it, but for the batch */
    size_t request_size, sent; /* of the request under way, with its batch */
    int outstanding, is_sending;
    int64_t offset;
    double begun[IN_FLIGHT_MAX]; /* a ring, the oldest at `answered` */
    uint32_t asked, answered;
    uint8_t head[HEAD]; /* of the response under way, its size first */
    size_t received;
} connection;

static const char *topic;
static int api, in_flight, acks, fetch_bytes;
static long requests, started, finished;
static double until;
static uint64_t batch_bytes;
static uint8_t *batch;
static size_t batch_size, batch_records;
static int64_t end_offset;
static uint32_t latencies[LATENCY_MAX + 1];
static uint8_t scratch[SCRATCH];
static int poller;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    fprintf(stderr, "raw_load: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
    exit(1);
}

static uint8_t *put16(uint8_t *p, uint16_t x)
{
    *p++ = x >> 8;
    *p++ = x;
    return p;
}

static uint8_t *put32(uint8_t *p, uint32_t x)
{
    return put16(put16(p, x >> 16), x);
}

static uint8_t *put64(uint8_t *p, uint64_t x)
{
    return put32(put32(p, x >> 32), x);
}

static uint8_t *put_text(uint8_t *p, const char *text)
{
    p = put16(p, strlen(text));
    memcpy(p, text, strlen(text));
    return p + strlen(text);
}

/* Produce v7 and Fetch v11, the last of their plain encodings; only numbers change later. */
static void build_request(connection *c)
{
    uint8_t *p = put32(put16(put16(c->request + 4, api), api == PRODUCE ? 7 : 11), 0);
    p = put_text(p, "raw_load");
    if (api == PRODUCE) {
        p = put16(p, -1);                  /* transactional id */
        p = put32(put16(p, acks), 30000);  /* timeout */
        p = put32(put_text(put32(p, 1), topic), 1);
        p = put32(put32(p, c->partition), batch_size);
    } else {
        p = put32(put32(put32(p, -1), 500), 1); /* replica, wait, least bytes */
        *(p = put32(p, fetch_bytes)) = 0;       /* isolation level */
        p = put32(put32(p + 1, 0), -1);         /* no session */
        p = put32(put_text(put32(p, 1), topic), 1);
        p = put32(put32(p, c->partition), -1); /* leader epoch */
        p = put64(put64(p, 0), -1);            /* offset, log start */
        p = put16(put32(put32(p, fetch_bytes), 0), 0); /* nothing forgotten, no rack */
    }
    c->request_size = p - c->request;
    put32(c->request, c->request_size - 4 + (api == PRODUCE ? batch_size : 0));
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Tell when there is something to read, or room for the rest of what is being sent. */
static void watch(connection *c, int operation)
{
    struct epoll_event event = {EPOLLIN | (c->is_sending ? EPOLLOUT : 0), {.ptr = c}};
    if (epoll_ctl(poller, operation, c->fd, &event))
        fail("epoll_ctl");
}

/* Send as much as may be in flight and the socket takes. */
static void send_requests(connection *c)
{
    for (;;) {
        if (!c->is_sending) {
            double at;
            if (c->outstanding == in_flight || started == requests || (at = now()) >= until)
                return;
            put32(c->request + CORRELATION, c->asked);
            if (api == FETCH)
                put64(c->request + c->request_size - 26, c->offset);
            c->begun[c->asked++ % IN_FLIGHT_MAX] = at;
            c->outstanding++, started++;
            c->sent = 0, c->is_sending = 1;
        }
        size_t head = c->sent < c->request_size ? c->request_size - c->sent : 0;
        size_t into = c->sent - (c->request_size - head);
        struct iovec parts[2] = {{c->request + c->sent, head}, {batch + into, batch_size - into}};
        ssize_t n = writev(c->fd, parts + !head, api == PRODUCE && head ? 2 : 1);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            fail("writev");
        c->sent += n;
        c->is_sending = c->sent < c->request_size + (api == PRODUCE ? batch_size : 0);
    }
}

static void send_more(connection *c)
{
    int waited = c->is_sending;
    send_requests(c);
    if (waited != c->is_sending)
        watch(c, EPOLL_CTL_MOD);
}

/* Look at the beginning of a response that has arrived whole. */
static void finish(connection *c)
{
    double spent = (now() - c->begun[c->answered % IN_FLIGHT_MAX]) * 1e6;
    size_t name = strlen(topic);
    const uint8_t *p = c->head + 8;
    if (load_be32(c->head + 4) != c->answered++)
        fail("the order of responses");
    if (api == PRODUCE) {
        p += 4 + 2 + name + 4 + 4;
        batch_bytes += batch_size;
    } else {
        p += 4 + 2 + 4 + 4 + 2 + name + 4 + 4;
        size_t got = load_be32(p + 2 + 3 * 8 + 4 + 4);
        size_t whole = got / batch_size;
        batch_bytes += got;
        c->offset += whole * batch_records;
        if (!whole)
            fail("a fetch without a whole batch");
        if (c->offset >= end_offset)
            c->offset = 0;
    }
    if (p[0] || p[1]) {
        fprintf(stderr, "raw_load: error code %d\n", p[0] << 8 | p[1]);
        exit(1);
    }
    latencies[spent < LATENCY_MAX ? (int)spent : LATENCY_MAX]++;
    c->outstanding--, finished++;
}

static void receive(connection *c)
{
    ssize_t n = recv(c->fd, scratch, SCRATCH, 0);
    if (n <= 0)
        fail("recv");
    for (uint8_t *p = scratch, *last = p + n; p < last;) {
        size_t frame = c->received < 4 ? 4 : 4 + (size_t)load_be32(c->head);
        size_t take = frame - c->received;
        if (take > (size_t)(last - p))
            take = last - p;
        if (c->received < HEAD) {
            size_t room = HEAD - c->received;
            memcpy(c->head + c->received, p, take < room ? take : room);
        }
        c->received += take;
        p += take;
        if (c->received > 4 && c->received == frame) {
            finish(c);
            c->received = 0;
        }
    }
}

static int quantile(double part)
{
    uint64_t below = 0;
    int at = 0;
    while (at < LATENCY_MAX && (below += latencies[at]) < part * finished)
        at++;
    return at;
}

static void report(double begun)
{
    printf("%ld %lu %.6f %d %d %d\n", finished, (unsigned long)batch_bytes, now() - begun,
           quantile(0.5), quantile(0.99), quantile(1));
}

static void load(int port, int partitions, int count, double seconds)
{
    connection *all = calloc(count, sizeof *all);
    struct epoll_event events[64];
    poller = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        connection *c = all + i;
        c->partition = i % partitions;
        c->fd = connect_to(port);
        if (fcntl(c->fd, F_SETFL, O_NONBLOCK))
            fail("fcntl");
        build_request(c);
        watch(c, EPOLL_CTL_ADD);
    }
    double begun = now();
    until = begun + seconds;
    for (int i = 0; i < count; i++)
        send_more(all + i);
    while (finished < started) {
        int ready = epoll_wait(poller, events, 64, 10000);
        if (ready <= 0)
            fail("no answer within ten seconds");
        for (int i = 0; i < ready; i++) {
            connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLIN)
                receive(c);
            send_more(c);
        }
    }
    report(begun);
}

static void receive_all(int fd, uint8_t *to, size_t size)
{
    for (ssize_t n; size; to += n, size -= n)
        if ((n = recv(fd, to, size, 0)) <= 0)
            fail("recv");
}

/* Receive one response; return its error code, and where that stands. */
static int answer_of(connection *c, size_t before, const uint8_t **at)
{
    receive_all(c->fd, scratch, 4);
    size_t size = load_be32(scratch);
    if (size > SCRATCH)
        fail("size of a response");
    receive_all(c->fd, scratch, size);
    *at = scratch + before;
    return (*at)[0] << 8 | (*at)[1];
}

/* From before a record is sent until a consumer's long poll has brought it. */
static void relay(int port, double seconds)
{
    connection reader = {0}, writer = {0};
    size_t name = strlen(topic);
    const uint8_t *at;
    api = FETCH, build_request(&reader), reader.fd = connect_to(port);
    api = PRODUCE, build_request(&writer), writer.fd = connect_to(port);
    double begun = now();
    for (int64_t offset = 0; now() < begun + seconds; offset += batch_records) {
        struct iovec parts[2] = {{writer.request, writer.request_size}, {batch, batch_size}};
        double asked = 0;
        size_t got = 0;
        put64(reader.request + reader.request_size - 26, offset);
        while (!got) { /* a long poll without records is asked again */
            if (write(reader.fd, reader.request, reader.request_size) < 0)
                fail("write");
            if (!asked) {
                asked = now();
                if (writev(writer.fd, parts, 2) != (ssize_t)(writer.request_size + batch_size))
                    fail("writev");
            }
            if (answer_of(&reader, 4 + 4 + 2 + 4 + 4 + 2 + name + 4 + 4, &at))
                fail("fetch");
            got = load_be32(at + 2 + 3 * 8 + 4 + 4);
        }
        double spent = (now() - asked) * 1e6;
        latencies[spent < LATENCY_MAX ? (int)spent : LATENCY_MAX]++;
        finished++, batch_bytes += got;
        if (answer_of(&writer, 4 + 4 + 2 + name + 4 + 4, &at))
            fail("produce");
    }
    report(begun);
}

static void hostile(int port, long count, unsigned seed)
{
    uint8_t frame[64];
    struct linger at_once = {1, 0};
    srand(seed);
    while (count--) {
        int fd = connect_to(port);
        for (size_t i = 0; i < sizeof frame; i++)
            frame[i] = rand();
        switch (rand() % 5) {
        case 0: put32(frame, 0x7fffffff); break;                              /* too large */
        case 1: put32(frame, -1); break;                                      /* no size */
        case 2: put32(frame, 1000); break;                                    /* never whole */
        case 3: put32(frame, 60); break;                                      /* noise */
        case 4: put16(put16(put32(frame, 60), rand() % 95), rand() % 20);     /* nearly right */
        }
        if (send(fd, frame, sizeof frame, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
            fail("send");
        recv(fd, frame, sizeof frame, MSG_DONTWAIT);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* ports are few */
        close(fd);
    }
}

static void read_batch(const char *path)
{
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about))
        fail(path);
    batch_size = about.st_size;
    batch = malloc(batch_size);
    if (fread(batch, 1, batch_size, file) != batch_size)
        fail(path);
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "hostile")) {
        hostile(atoi(argv[2]), atol(argv[3]), atoi(argv[4]));
        return 0;
    }
    if (argc == 6 && !strcmp(argv[1], "relay")) {
        topic = argv[3];
        read_batch(argv[5]);
        acks = -1, fetch_bytes = SCRATCH / 2, batch_records = 1;
        relay(atoi(argv[2]), atof(argv[4]));
        return 0;
    }
    int fetches = argc == 13 && !strcmp(argv[1], "fetch");
    if (!fetches && !(argc == 11 && !strcmp(argv[1], "produce")))
        return 2;
    api = fetches ? FETCH : PRODUCE;
    topic = argv[3];
    in_flight = atoi(argv[6]);
    acks = fetch_bytes = atoi(argv[7]);
    requests = atol(argv[9]);
    read_batch(argv[10]);
    if (strlen(topic) > 200 || in_flight > IN_FLIGHT_MAX)
        return 2;
    if (fetches) {
        batch_records = atol(argv[11]);
        end_offset = atol(argv[12]);
    }
    load(atoi(argv[2]), atoi(argv[4]), atoi(argv[5]), atof(argv[8]));
    return 0;
}
