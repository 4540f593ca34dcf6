import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Commits transactions of ten records in three partitions: SERVERS TOPIC COUNT; prints seconds. */
public class Transactions {
    static final int WARM_UP = 20;

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[1]);
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            producer.initTransactions();
            commit(producer, arguments[1], WARM_UP);
            long begun = System.nanoTime();
            commit(producer, arguments[1], Integer.parseInt(arguments[2]));
            System.out.println((System.nanoTime() - begun) / 1e9);
        }
    }

    static void commit(KafkaProducer<String, String> producer, String topic, int count) {
        for (int number = 0; number < count; number++) {
            producer.beginTransaction();
            for (int record = 0; record < 10; record++) {
                producer.send(new ProducerRecord<>(topic, record % 3, null, "value " + record));
            }
            producer.commitTransaction();
        }
    }
}
