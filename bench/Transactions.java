import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Commits transactions of ten records in three partitions: SERVERS TOPIC SECONDS; prints count, seconds. */
public class Transactions {
    static final int WARM_UP = 20;

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[1]);
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            producer.initTransactions();
            for (int number = 0; number < WARM_UP; number++) commit(producer, arguments[1]);
            double seconds = Double.parseDouble(arguments[2]);
            long begun = System.nanoTime();
            int count = 0;
            while (since(begun) < seconds) {
                commit(producer, arguments[1]);
                count++;
            }
            System.out.println(count + " " + since(begun));
        }
    }

    static double since(long begun) {
        return (System.nanoTime() - begun) / 1e9;
    }

    static void commit(KafkaProducer<String, String> producer, String topic) {
        producer.beginTransaction();
        for (int record = 0; record < 10; record++) {
            producer.send(new ProducerRecord<>(topic, record % 3, null, "value " + record));
        }
        producer.commitTransaction();
    }
}
