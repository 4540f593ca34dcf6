// Kafka's own client in groups and transactions, told what to do line by line; see test_java_groups.py.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Groups {
    static final BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final Duration MOMENT = Duration.ofMillis(50);

    static String servers;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        servers = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answer(line.split("\t"));
                out.println(".");
            } catch (Exception e) {
                out.println("! " + e);
            }
            out.flush();
        }
        admin.close();
    }

    static void answer(String[] words) throws Exception {
        String topic = words[1];
        switch (words[0]) {
            case "share-out" -> shareOut(topic, words[2], Integer.parseInt(words[3]));
            case "metadata" -> metadata(topic, words[2]);
            case "pattern" -> pattern(topic, words[2]);
            case "static" -> staticMember(topic, words[2]);
            case "transform" -> transform(topic, words[2], words[3], Integer.parseInt(words[4]));
            case "fence" -> fence(topic);
            case "queue" -> queue(topic, words[2], Integer.parseInt(words[3]));
            case "administer" -> administer(topic);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    /** A consumer that writes down what it owns and what it reads. */
    static class Member implements ConsumerRebalanceListener, AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final Set<TopicPartition> owned = new HashSet<>();
        final List<String> read = new ArrayList<>();
        int changes = 0;
        int lost = 0;

        Member(String group, String protocol, Map<String, Object> more) {
            Map<String, Object> config = new HashMap<>(Map.of(
                "bootstrap.servers", servers, "group.id", group, "auto.offset.reset", "earliest",
                "enable.auto.commit", "false", "metadata.max.age.ms", "500"));
            switch (protocol) {
                case "consumer" -> config.put("group.protocol", "consumer");
                case "cooperative" -> config.putAll(Map.of(
                    "partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
                    "heartbeat.interval.ms", "300"));
                default -> config.putAll(Map.of(
                    "partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer.RangeAssignor",
                    "heartbeat.interval.ms", "300"));
            }
            config.putAll(more);
            consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        }

        int generation() {
            return consumer.groupMetadata().generationId();
        }

        Member(String group, String protocol) {
            this(group, protocol, Map.of());
            consumer.subscribe(List.of(group), this);
        }

        void poll() {
            for (ConsumerRecord<String, String> record : consumer.poll(MOMENT))
                read.add(record.partition() + ":" + record.offset());
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            changes++;
            owned.addAll(partitions);
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            changes++;
            owned.removeAll(partitions);
        }

        @Override public void onPartitionsLost(Collection<TopicPartition> partitions) {
            lost++;
            owned.removeAll(partitions);
        }

        @Override public void close() {
            consumer.close();
        }
    }

    static void pollUntil(BooleanSupplier isDone, Member... members) {
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (!isDone.getAsBoolean()) {
            if (System.nanoTime() > deadline) throw new IllegalStateException("it does not settle");
            for (Member member : members) member.poll();
        }
    }

    static boolean isShared(int partitions, Member... members) {
        Set<TopicPartition> all = new HashSet<>();
        int total = 0;
        for (Member member : members) {
            if (member.owned.isEmpty()) return false;
            all.addAll(member.owned);
            total += member.owned.size();
        }
        return total == partitions && all.size() == partitions;
    }

    /** Two members, then three, then two; says how many records nobody read, or read twice. */
    static void shareOut(String topic, String protocol, int records) {
        int partitions = 6;
        Set<String> read = new HashSet<>();
        try (Member first = new Member(topic, protocol)) {
            pollUntil(() -> isShared(partitions, first), first);
            try (Member second = new Member(topic, protocol)) {
                pollUntil(() -> isShared(partitions, first, second), first, second);
                try (Member third = new Member(topic, protocol)) {
                    pollUntil(() -> isShared(partitions, first, second, third), first, second, third);
                    second.consumer.close();
                    pollUntil(() -> isShared(partitions, first, third), first, third);
                    pollUntil(() -> {
                        read.addAll(first.read);
                        read.addAll(second.read);
                        read.addAll(third.read);
                        return read.size() == records;
                    }, first, third);
                    out.println("lost\t" + (first.lost + second.lost + third.lost));
                }
            }
        }
        out.println("read\t" + read.size());
    }

    static void metadata(String topic, String protocol) {
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        TopicPartition two = new TopicPartition(topic, 2);
        try (Member member = new Member(topic, protocol)) {
            pollUntil(() -> member.owned.size() == 6, member);
            member.consumer.commitSync(Map.of(
                zero, new OffsetAndMetadata(7, Optional.of(0), "words: \u017e"),
                one, new OffsetAndMetadata(0)));
            var found = new TreeMap<String, OffsetAndMetadata>();
            member.consumer.committed(Set.of(zero, one, two))
                .forEach((place, committed) -> found.put(place.toString(), committed));
            found.forEach((place, committed) -> out.println(place + "\t" + (committed == null ? "none"
                : committed.offset() + " " + committed.leaderEpoch() + " " + committed.metadata())));
        }
    }

    static void pattern(String prefix, String protocol) throws Exception {
        create(prefix + "-1", 1);
        // The new protocol's patterns are looked up by the broker, which takes its time to look again.
        boolean isNew = protocol.equals("consumer");
        if (isNew) create(prefix + "-2", 3);
        try (Member member = new Member(prefix, protocol, Map.of())) {
            String regex = prefix + "-[0-9]";
            if (isNew) member.consumer.subscribe(new SubscriptionPattern(regex), member);
            else member.consumer.subscribe(Pattern.compile(regex), member);
            if (!isNew) {
                pollUntil(() -> member.owned.size() == 1, member);
                create(prefix + "-2", 3);
            }
            pollUntil(() -> member.owned.size() == 4, member);
            var names = new TreeSet<String>();
            member.owned.forEach(place -> names.add(place.topic()));
            names.forEach(out::println);
        }
    }

    static void create(String topic, int partitions) throws Exception {
        var wanted = new org.apache.kafka.clients.admin.NewTopic(topic, partitions, (short) 1);
        admin.createTopics(List.of(wanted)).all().get();
    }

    /** One of two static members restarts: it gets what it had, and the other does not notice. */
    static void staticMember(String topic, String protocol) {
        Map<String, Object> one = Map.of("group.instance.id", "one");
        Map<String, Object> two = Map.of("group.instance.id", "two");
        try (Member first = new Member(topic, protocol, one)) {
            first.consumer.subscribe(List.of(topic), first);
            Set<TopicPartition> had;
            try (Member second = new Member(topic, protocol, two)) {
                second.consumer.subscribe(List.of(topic), second);
                // A rebalance is over when both have its generation; the first may hear of it last.
                pollUntil(
                        () -> isShared(6, first, second) && first.generation() == second.generation(),
                        first, second);
                had = new HashSet<>(second.owned);
            }
            first.poll();
            int changes = first.changes;
            try (Member again = new Member(topic, protocol, two)) {
                again.consumer.subscribe(List.of(topic), again);
                pollUntil(() -> !again.owned.isEmpty(), first, again);
                out.println("same\t" + again.owned.equals(had));
                out.println("noticed\t" + (first.changes - changes));
            }
        }
    }

    static KafkaProducer<String, String> producer(String name) {
        return new KafkaProducer<>(
            Map.of("bootstrap.servers", servers, "transactional.id", name),
            new StringSerializer(), new StringSerializer());
    }

    /** Copy a topic, every batch in a transaction with its offsets; each third one is given up first. */
    static void transform(String topic, String target, String protocol, int records) {
        int done = 0;
        int turns = 0;
        try (Member member = new Member(topic, protocol, Map.of("max.poll.records", "17"));
             KafkaProducer<String, String> producer = producer(topic)) {
            member.consumer.subscribe(List.of(topic), member);
            producer.initTransactions();
            while (done < records) {
                var batch = member.consumer.poll(MOMENT);
                if (batch.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : batch) {
                    producer.send(new ProducerRecord<>(target, 0, null, "copy of " + record.partition()
                        + ":" + record.offset()));
                    offsets.put(new TopicPartition(topic, record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, member.consumer.groupMetadata());
                if (turns++ % 3 == 0) {
                    producer.abortTransaction();
                    Map<TopicPartition, OffsetAndMetadata> back =
                        member.consumer.committed(member.consumer.assignment());
                    for (TopicPartition place : member.consumer.assignment())
                        if (back.get(place) == null) member.consumer.seekToBeginning(List.of(place));
                        else member.consumer.seek(place, back.get(place).offset());
                } else {
                    producer.commitTransaction();
                    done += batch.count();
                }
            }
        }
        try (var reader = new KafkaConsumer<>(
                Map.of("bootstrap.servers", servers, "isolation.level", "read_committed"),
                new StringDeserializer(), new StringDeserializer())) {
            TopicPartition place = new TopicPartition(target, 0);
            reader.assign(List.of(place));
            reader.seekToBeginning(List.of(place));
            long end = reader.endOffsets(List.of(place)).get(place);
            Map<String, Integer> times = new HashMap<>();
            while (reader.position(place) < end)
                reader.poll(MOMENT).forEach(record -> times.merge(record.value(), 1, Integer::sum));
            out.println("copied\t" + times.size());
            out.println("twice\t" + times.values().stream().filter(count -> count > 1).count());
        }
    }

    static void fence(String topic) {
        try (KafkaProducer<String, String> first = producer(topic);
             KafkaProducer<String, String> second = producer(topic)) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(topic, "lost"));
            first.flush();
            second.initTransactions();
            try {
                first.commitTransaction();
                out.println("committed");
            } catch (ProducerFencedException e) {
                out.println("fenced");
            }
            second.beginTransaction();
            second.send(new ProducerRecord<>(topic, "kept"));
            second.commitTransaction();
        }
    }

    /** Two share consumers read everything; the first record of all is released once. */
    static void queue(String topic, String mode, int records) throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, topic);
        var reset = new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(group, List.of(reset))).all().get();
        Map<String, Object> config = Map.of(
            "bootstrap.servers", servers, "group.id", topic, "share.acknowledgement.mode", mode);
        Map<String, Integer> times = new HashMap<>();
        int highest = 0;
        boolean isExplicit = mode.equals("explicit");
        try (var first = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
             var second = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            int total = 0;
            var both = List.of(first, second);
            both.forEach(consumer -> consumer.subscribe(List.of(topic)));
            long deadline = System.nanoTime() + 60_000_000_000L;
            while (total < records + (isExplicit ? 1 : 0)) {
                if (System.nanoTime() > deadline) throw new IllegalStateException(total + " records");
                for (var consumer : both) {
                    for (ConsumerRecord<String, String> record : consumer.poll(MOMENT)) {
                        total++;
                        String place = record.partition() + ":" + record.offset();
                        boolean isFirst = times.merge(place, 1, Integer::sum) == 1;
                        highest = Math.max(highest, record.deliveryCount().orElse((short) 0));
                        if (isExplicit)
                            consumer.acknowledge(record, place.equals("0:0") && isFirst
                                ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    }
                    consumer.commitSync();
                }
            }
        }
        out.println("read\t" + times.size());
        out.println("twice\t" + times.values().stream().filter(count -> count > 1).count());
        out.println("deliveries\t" + highest);
    }

    /** What an administrator sees of a group and of a transaction under way. */
    static void administer(String topic) throws Exception {
        TopicPartition place = new TopicPartition(topic, 0);
        try (Member member = new Member(topic, "eager");
             KafkaProducer<String, String> producer = producer(topic)) {
            pollUntil(() -> member.owned.size() == 6, member);
            member.consumer.commitSync(Map.of(place, new OffsetAndMetadata(3)));
            var described = admin.describeConsumerGroups(List.of(topic)).all().get().get(topic);
            out.println("group\t" + described.groupState() + " " + described.partitionAssignor() + " "
                + described.members().size());
            out.println("listed\t" + admin.listGroups().all().get().stream()
                .filter(group -> group.groupId().equals(topic)).findFirst().get().protocol());
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "open")).get();
            var open = admin.describeTransactions(List.of(topic)).description(topic).get();
            out.println("transaction\t" + open.state() + " " + open.topicPartitions());
            out.println("active\t" + admin.describeProducers(List.of(place)).partitionResult(place).get()
                .activeProducers().stream().filter(one -> one.currentTransactionStartOffset().isPresent())
                .count());
            out.println("transactions\t" + admin.listTransactions().all().get().stream()
                .filter(one -> one.transactionalId().equals(topic))
                .map(TransactionListing::state).toList());
            admin.fenceProducers(List.of(topic)).all().get();
            try {
                producer.commitTransaction();
                out.println("committed");
            } catch (ProducerFencedException e) {
                out.println("fenced");
            }
        }
        var offsets = admin.listConsumerGroupOffsets(Map.of(topic, new ListConsumerGroupOffsetsSpec()))
            .partitionsToOffsetAndMetadata(topic).get();
        out.println("offset\t" + offsets.get(place).offset());
        admin.alterConsumerGroupOffsets(topic, Map.of(place, new OffsetAndMetadata(1))).all().get();
        offsets = admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get();
        out.println("altered\t" + offsets.get(place).offset());
        admin.deleteConsumerGroupOffsets(topic, Set.of(place)).all().get();
        out.println("left\t" + admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get());
        admin.deleteConsumerGroups(List.of(topic)).all().get();
    }
}
