import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A group whose members are replaced one by one: classic, consumer protocol, and classic again. */
public class ConsumerGroups {
    static final int PARTITIONS = 6;
    static final int SECONDS_MAX = 60;

    final String servers;
    final Map<String, KafkaConsumer<String, String>> members = new HashMap<>();
    final Set<String> read = new TreeSet<>();
    int written;

    ConsumerGroups(String servers) {
        this.servers = servers;
    }

    KafkaConsumer<String, String> consumer(String group, String protocol, String instance) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", servers);
        configs.put("group.id", group);
        configs.put("group.protocol", protocol);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", "false");
        if (protocol.equals("classic")) {
            configs.put("heartbeat.interval.ms", "300");
            configs.put("session.timeout.ms", "10000");
            configs.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        if (instance != null)
            configs.put("group.instance.id", instance);
        return new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer());
    }

    void start(String name, String protocol) {
        KafkaConsumer<String, String> consumer = consumer("group", protocol, null);
        consumer.subscribe(List.of("topic"));
        members.put(name, consumer);
    }

    void stop(String name) {
        members.remove(name).close();
    }

    void poll() {
        for (KafkaConsumer<String, String> consumer : members.values()) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(20)))
                read.add(record.value());
            try {
                consumer.commitSync();
            } catch (RebalanceInProgressException | CommitFailedException error) {
                // Others join or leave; what was read and not committed is read again.
            }
        }
    }

    void await(String what, BooleanSupplier condition) {
        long end = System.currentTimeMillis() + SECONDS_MAX * 1000L;
        while (!condition.getAsBoolean()) {
            if (System.currentTimeMillis() > end)
                throw new IllegalStateException("never: " + what);
            poll();
        }
        System.out.println(what);
    }

    boolean hasAll(int fewest) {
        Set<TopicPartition> all = new HashSet<>();
        int sum = 0;
        for (KafkaConsumer<String, String> consumer : members.values()) {
            Collection<TopicPartition> own = consumer.assignment();
            if (own.size() < fewest)
                return false;
            sum += own.size();
            all.addAll(own);
        }
        return sum == PARTITIONS && all.size() == PARTITIONS;
    }

    void write(KafkaProducer<String, String> producer) throws Exception {
        for (int index = 0; index < PARTITIONS; index++) {
            written++;
            producer.send(new ProducerRecord<>("topic", index, null, "record " + written)).get();
        }
    }

    static String described(Admin admin, String group) throws Exception {
        ConsumerGroupDescription described =
            admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        return described.type() + " " + described.groupState() + " "
            + described.members().size();
    }

    void replaceOneByOne(KafkaProducer<String, String> producer, Admin admin) throws Exception {
        start("a", "classic");
        start("b", "classic");
        await("classic members have all", () -> hasAll(2));
        System.out.println(described(admin, "group"));
        write(producer);
        start("c", "consumer");
        await("a consumer joined them", () -> hasAll(2));
        System.out.println(described(admin, "group"));
        write(producer);
        stop("a");
        start("d", "consumer");
        await("another took a's place", () -> hasAll(2));
        stop("b");
        await("all are of the consumer protocol", () -> hasAll(3));
        System.out.println(described(admin, "group"));
        write(producer);
        start("e", "classic");
        await("a classic member came back", () -> hasAll(2));
        stop("c");
        stop("d");
        await("it is alone", () -> hasAll(6));
        System.out.println(described(admin, "group"));
        write(producer);
        await("everything was read", () -> read.size() == written);
        stop("e");
    }

    void readByPattern(Admin admin) throws Exception {
        List<TopicPartition> lost = new ArrayList<>();
        KafkaConsumer<String, String> consumer = consumer("by pattern", "consumer", "instance");
        consumer.subscribe(new SubscriptionPattern("top.*"), new ConsumerRebalanceListener() {
            @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }
            @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) { }
            @Override public void onPartitionsLost(Collection<TopicPartition> partitions) {
                lost.addAll(partitions);
            }
        });
        members.put("by pattern", consumer);
        await("a pattern finds a topic", () -> consumer.assignment().size() == PARTITIONS);
        admin.createTopics(List.of(new NewTopic("topping", 2, (short) 1))).all().get();
        await("a pattern finds another", () -> consumer.assignment().size() == PARTITIONS + 2);
        stop("by pattern");
        System.out.println("lost: " + lost.size());
        System.out.println(described(admin, "by pattern"));
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> configs = Map.of("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(configs);
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            admin.createTopics(List.of(new NewTopic("topic", PARTITIONS, (short) 1))).all().get();
            ConsumerGroups groups = new ConsumerGroups(arguments[0]);
            groups.replaceOneByOne(producer, admin);
            groups.readByPattern(admin);
        }
    }
}
