// Kafka's share consumer: reads a topic until it has seen so many records, or waited too long.
// One line a delivery: offset, value, delivery count. Records whose value begins with "release"
// are released the first time, those that begin with "reject" are rejected, others accepted.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ShareReader {
    static final long WAIT_MS_MAX = 30_000;

    public static void main(String[] arguments) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("group.id", arguments[1]);
        configs.put("share.acknowledgement.mode", "explicit");
        int left = Integer.parseInt(arguments[3]);
        long until = System.currentTimeMillis() + WAIT_MS_MAX;
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            consumer.setAcknowledgementCommitCallback((offsets, error) -> {
                if (error != null) System.out.println("! " + error);
            });
            consumer.subscribe(List.of(arguments[2]));
            while (left > 0 && System.currentTimeMillis() < until) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    int count = record.deliveryCount().get();
                    System.out.println(record.offset() + "\t" + record.value() + "\t" + count);
                    consumer.acknowledge(record, typeFor(record.value(), count));
                    left -= 1;
                }
                consumer.commitSync().forEach((partition, error) ->
                    error.ifPresent(each -> System.out.println("! " + each)));
            }
        }
    }

    static AcknowledgeType typeFor(String value, int count) {
        if (value.startsWith("release") && count == 1) return AcknowledgeType.RELEASE;
        if (value.startsWith("reject")) return AcknowledgeType.REJECT;
        return AcknowledgeType.ACCEPT;
    }
}
