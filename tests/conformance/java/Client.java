// Kafka's own client, told what to do line by line; see clients/programs.py.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
    static final BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    static String servers;
    static Admin admin;
    static KafkaConsumer<String, String> consumer;

    public static void main(String[] args) throws Exception {
        servers = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers));
        Map<String, Object> config = Map.of(
            "bootstrap.servers", servers, "fetch.max.wait.ms", args[1], "auto.offset.reset", "none");
        consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answer(line.split("\t"));
                out.println(".");
            } catch (ExecutionException e) {
                out.println("! " + e.getCause());
            } catch (RuntimeException e) {
                out.println("! " + e);
            }
            out.flush();
        }
        consumer.close();
        admin.close();
    }

    static void answer(String[] words) throws Exception {
        String topic = words.length > 1 ? words[1] : null;
        switch (words[0]) {
            case "produce" -> produce(topic, Integer.parseInt(words[2]), words[3], words[4], rows(words[5]));
            case "consume" -> consume(
                new TopicPartition(topic, Integer.parseInt(words[2])),
                Long.parseLong(words[3]),
                Integer.parseInt(words[4]));
            case "offset" -> out.println(offset(
                new TopicPartition(topic, Integer.parseInt(words[2])), Long.parseLong(words[3])));
            case "list" -> admin.listTopics().names().get().forEach(out::println);
            case "create" -> create(topic, Integer.parseInt(words[2]), Arrays.copyOfRange(words, 3, words.length));
            case "count" -> out.println(count(topic));
            case "config" -> {
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                var configs = admin.describeConfigs(List.of(resource)).all().get().get(resource);
                out.println(configs.get(words[2]).value());
            }
            case "set" -> {
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                var change = new AlterConfigOp(
                    new ConfigEntry(words[2], words[3]), AlterConfigOp.OpType.SET);
                admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
            }
            case "grow" -> admin.createPartitions(
                Map.of(topic, NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get();
            case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    static List<String[]> rows(String count) throws Exception {
        List<String[]> rows = new ArrayList<>();
        for (int i = Integer.parseInt(count); i > 0; i--)
            rows.add(in.readLine().split("\t"));
        return rows;
    }

    static void produce(String topic, int partition, String codec, String acks, List<String[]> rows)
        throws Exception {
        boolean idempotent = acks.equals("idempotent");
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", servers);
        config.put("compression.type", codec);
        config.put("linger.ms", 50);
        config.put("acks", idempotent ? "all" : acks);
        config.put("enable.idempotence", idempotent);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (String[] row : rows) {
                String key = row[1].equals("-") ? null : row[1];
                sent.add(producer.send(
                    new ProducerRecord<>(topic, partition, Long.parseLong(row[0]), key, row[2])));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent)
                one.get();
        }
    }

    static void consume(TopicPartition partition, long offset, int count) {
        consumer.assign(List.of(partition));
        consumer.seek(partition, offset);
        int seen = 0;
        while (seen < count) {
            var records = consumer.poll(Duration.ofSeconds(30)).records(partition);
            if (records.isEmpty())
                throw new IllegalStateException("only " + seen + " records");
            for (ConsumerRecord<String, String> record : records)
                if (seen < count) {
                    String key = record.key() == null ? "-" : record.key();
                    out.println(record.timestamp() + "\t" + key + "\t" + record.value());
                    seen++;
                }
        }
    }

    static long offset(TopicPartition partition, long timestamp) {
        if (timestamp == -2)
            return consumer.beginningOffsets(List.of(partition)).get(partition);
        if (timestamp == -1)
            return consumer.endOffsets(List.of(partition)).get(partition);
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition);
        return found == null ? -1 : found.offset();
    }

    static void create(String topic, int partitions, String[] settings) throws Exception {
        Map<String, String> configs = new HashMap<>();
        for (String setting : settings)
            configs.put(setting.split("=")[0], setting.split("=")[1]);
        NewTopic wanted = new NewTopic(topic, Optional.of(partitions), Optional.of((short) 1));
        admin.createTopics(List.of(wanted.configs(configs))).all().get();
    }

    static int count(String topic) throws Exception {
        TopicDescription described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        if (described.partitions().stream().anyMatch(partition -> partition.leader() == null))
            throw new IllegalStateException("a partition without a leader");
        return described.partitions().size();
    }
}
