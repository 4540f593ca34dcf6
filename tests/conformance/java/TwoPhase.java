import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * As much of two-phase commit (KIP-939) as Kafka's client 4.4.0 has: SERVERS TOPIC. Prints `open`
 * when its transaction has a record, waits for a line, commits, and prints `committed`.
 */
public class TwoPhase {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "transactional.id", arguments[1],
            "transaction.two.phase.commit.enable", true);
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(arguments[1], "prepared")).get();
            System.out.println("open");
            System.in.read();
            producer.commitTransaction();
            System.out.println("committed");
        }
    }
}
