/* librdkafka at full speed, without a language between it and the broker.
 *
 * librdkafka_load produce SERVERS TOPIC PARTITIONS ACKS SIZE SECONDS COUNT   until either is reached
 * librdkafka_load consume SERVERS TOPIC PARTITIONS GROUP COUNT              without the group
 * librdkafka_load join SERVERS TOPIC PARTITIONS GROUP COUNT                 as its only member
 *
 * Linked with the library that confluent-kafka brings, which comes without headers: what is used of
 * it is declared here. Prints the records, and the seconds from the first to the last. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct conf conf;
typedef struct handle handle;
typedef struct topic topic;
typedef struct queue queue;
typedef struct list list;
typedef struct {
    int error;
    topic *of;
    int32_t partition;
    void *payload;
    size_t size;
    void *key;
    size_t key_size;
    int64_t offset;
    void *opaque;
} message;

enum { PRODUCER = 0, CONSUMER = 1, BLOCK = 4, FROM_BEGINNING = -2, AT_ONCE = 1000, TIMEOUT_MS = 30000 };

conf *rd_kafka_conf_new(void);
int rd_kafka_conf_set(conf *, const char *name, const char *value, char *error, size_t size);
handle *rd_kafka_new(int kind, conf *, char *error, size_t size);
topic *rd_kafka_topic_new(handle *, const char *name, void *no_conf);
int rd_kafka_produce_batch(topic *, int32_t partition, int flags, message *, int count);
int rd_kafka_flush(handle *, int timeout_ms);
int rd_kafka_metadata(handle *, int all_topics, topic *, const void **, int timeout_ms);
queue *rd_kafka_queue_new(handle *);
int rd_kafka_consume_start_queue(topic *, int32_t partition, int64_t offset, queue *);
ssize_t rd_kafka_consume_batch_queue(queue *, int timeout_ms, message **, size_t size);
void rd_kafka_message_destroy(message *);
list *rd_kafka_topic_partition_list_new(int size);
void *rd_kafka_topic_partition_list_add(list *, const char *topic, int32_t partition);
int rd_kafka_subscribe(handle *, const list *topics);
int rd_kafka_poll_set_consumer(handle *);
queue *rd_kafka_queue_get_consumer(handle *);

static char error[512];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    fprintf(stderr, "librdkafka_load: %s %s\n", what, error);
    exit(1);
}

static handle *connect_to(int kind, const char *servers, const char *acks, const char *group)
{
    conf *settings = rd_kafka_conf_new();
    handle *client;
    if (rd_kafka_conf_set(settings, "bootstrap.servers", servers, error, sizeof error) ||
        (acks && rd_kafka_conf_set(settings, "acks", acks, error, sizeof error)) ||
        (group && (rd_kafka_conf_set(settings, "group.id", group, error, sizeof error) ||
                   rd_kafka_conf_set(settings, "auto.offset.reset", "earliest", error,
                                     sizeof error))))
        fail("settings");
    if (!(client = rd_kafka_new(kind, settings, error, sizeof error)))
        fail("client");
    return client;
}

static long produce(handle *client, topic *to, int partitions, size_t size, double until, long count)
{
    static message messages[AT_ONCE];
    char *payload = malloc(size);
    memset(payload, 'v', size);
    long sent = 0;
    for (long turn = 0; sent < count && now() < until; turn++) {
        for (int i = 0; i < AT_ONCE; i++)
            messages[i] = (message){.payload = payload, .size = size};
        int more = count - sent < AT_ONCE ? (int)(count - sent) : AT_ONCE;
        if (rd_kafka_produce_batch(to, turn % partitions, BLOCK, messages, more) != more)
            fail("produce");
        sent += more;
    }
    if (rd_kafka_flush(client, TIMEOUT_MS))
        fail("flush");
    return sent;
}

static queue *start(handle *client, topic *from, int partitions)
{
    queue *all = rd_kafka_queue_new(client);
    for (int partition = 0; partition < partitions; partition++)
        if (rd_kafka_consume_start_queue(from, partition, FROM_BEGINNING, all))
            fail("start");
    return all;
}

static queue *join(handle *client, const char *name)
{
    list *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, name, -1);
    if (rd_kafka_poll_set_consumer(client) || rd_kafka_subscribe(client, topics))
        fail("subscribe");
    return rd_kafka_queue_get_consumer(client);
}

static void consume(queue *all, long count)
{
    static message *messages[AT_ONCE];
    while (count > 0) {
        size_t more = count < AT_ONCE ? count : AT_ONCE; /* it waits until it has all of them */
        ssize_t got = rd_kafka_consume_batch_queue(all, TIMEOUT_MS, messages, more);
        if (got <= 0)
            fail("consume");
        for (ssize_t i = 0; i < got; i++) {
            if (messages[i]->error)
                fail("record");
            rd_kafka_message_destroy(messages[i]);
        }
        count -= got;
    }
}

int main(int argc, char **argv)
{
    int produces = argc == 9 && !strcmp(argv[1], "produce");
    int joins = argc == 7 && !strcmp(argv[1], "join");
    if (!produces && !joins && !(argc == 7 && !strcmp(argv[1], "consume")))
        return 2;
    handle *client = connect_to(produces ? PRODUCER : CONSUMER, argv[2], produces ? argv[5] : NULL,
                                joins ? argv[5] : NULL);
    topic *its = rd_kafka_topic_new(client, argv[3], NULL);
    int partitions = atoi(argv[4]);
    long count = atol(argv[argc - 1]);
    /* A producer that blocks on a full queue holds a lock that its topic's first metadata needs. */
    const void *metadata;
    if (rd_kafka_metadata(client, 0, its, &metadata, TIMEOUT_MS))
        fail("metadata");
    double begun = now();
    if (produces)
        count = produce(client, its, partitions, strtoul(argv[6], NULL, 10), begun + atof(argv[7]), count);
    else
        consume(joins ? join(client, argv[3]) : start(client, its, partitions), count);
    printf("%ld %.6f\n", count, now() - begun);
    fflush(stdout);
    _Exit(0); /* closing waits for a long poll, which is no part of the measurement */
}
