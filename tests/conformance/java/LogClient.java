// Fills topics of one partition and reads them back, with Kafka's own clients.
//
// produce SERVERS TOPICS SEED TIMESTAMP: all codecs, with and without idempotence, then transactions;
//     the last of these stays open, because the program ends without a word to the broker.
// read SERVERS TOPICS TIMESTAMP...: prints the topic with `u` and a record for each that is there,
//     `c` for each that is committed, and `t` with what each timestamp leads to.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class LogClient {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final long DEADLINE = System.nanoTime() + 45_000_000_000L;

    static String servers, topic;
    static Random random;
    static long timestamp;

    public static void main(String[] args) throws Exception {
        servers = args[1];
        for (String name : args[2].split(",")) {
            topic = name;
            if (args[0].equals("produce")) {
                random = new Random(Long.parseLong(args[3]));
                timestamp = Long.parseLong(args[4]);
                produce();
            } else {
                read(topic + " u", "read_uncommitted");
                read(topic + " c", "read_committed");
                lookUp(Arrays.copyOfRange(args, 3, args.length));
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static KafkaProducer<byte[], byte[]> producer(String codec, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", servers);
        config.put("compression.type", codec);
        config.put("batch.size", 1500);
        config.put("linger.ms", 1000);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void produce() {
        for (String codec : CODECS) {
            for (boolean idempotent : new boolean[] {true, false}) {
                try (var producer = producer(codec, Map.of("enable.idempotence", idempotent))) {
                    send(producer, 150);
                }
            }
        }
        List<KafkaProducer<byte[], byte[]>> writers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            var writer = producer(CODECS[random.nextInt(5)], Map.of(
                "transactional.id", topic + i, "transaction.timeout.ms", 600_000));
            writer.initTransactions();
            writer.beginTransaction();
            writers.add(writer);
        }
        for (int turn = 0; turn < 30; turn++) {
            var writer = writers.get(random.nextInt(3));
            send(writer, 1 + random.nextInt(30));
            if (random.nextInt(3) > 0) continue;
            if (random.nextBoolean()) writer.commitTransaction();
            else writer.abortTransaction();
            writer.beginTransaction();
        }
        send(writers.get(0), 1);
        for (int i = 1; i < 3; i++) writers.get(i).abortTransaction();
        try (var producer = producer("none", Map.of())) {
            send(producer, 3);
        }
    }

    static void send(KafkaProducer<byte[], byte[]> producer, int count) {
        for (int i = 0; i < count; i++) {
            byte[] value = new byte[random.nextInt(8) == 0 ? 2000 : random.nextInt(100)];
            random.nextBytes(value);
            byte[] key = ("key" + random.nextInt(40)).getBytes(StandardCharsets.UTF_8);
            var record = new ProducerRecord<>(topic, 0, timestamp + random.nextInt(50), key,
                random.nextInt(10) == 0 ? null : value);
            if (random.nextInt(3) == 0) record.headers().add("h\u00fc", null).add("", value);
            producer.send(record);
            timestamp += random.nextInt(20);
            if (random.nextInt(20) == 0) producer.flush();
        }
        producer.flush();
    }

    static KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Map<String, Object> config = Map.of("bootstrap.servers", servers,
            "isolation.level", isolation, "auto.offset.reset", "none");
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void read(String name, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(isolation)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            System.out.println(name + " end " + end);
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > DEADLINE) throw new IllegalStateException("no end in sight");
                for (var record : consumer.poll(Duration.ofMillis(100))) print(name, record);
            }
        }
    }

    static void print(String name, ConsumerRecord<byte[], byte[]> record) {
        StringBuilder line = new StringBuilder(name);
        line.append(' ').append(record.offset());
        line.append(' ').append(record.timestampType()).append(' ').append(record.timestamp());
        line.append(' ').append(record.leaderEpoch().orElse(-1));
        line.append(' ').append(hex(record.key())).append(' ').append(hex(record.value()));
        for (Header header : record.headers()) {
            line.append(' ').append(hex(header.key().getBytes(StandardCharsets.UTF_8)));
            line.append('=').append(hex(header.value()));
        }
        System.out.println(line);
    }

    static void lookUp(String[] timestamps) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = consumer("read_uncommitted")) {
            for (String target : timestamps) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(
                    Map.of(partition, Long.parseLong(target))).get(partition);
                System.out.println(topic + " t " + target + " " + (found == null ? "none"
                    : found.offset() + " " + found.timestamp() + " " + found.leaderEpoch().orElse(-1)));
            }
        }
    }

    static String hex(byte[] bytes) {
        return Optional.ofNullable(bytes).map(b -> "x" + HexFormat.of().formatHex(b)).orElse("-");
    }
}
