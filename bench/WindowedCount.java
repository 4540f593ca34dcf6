// Counts records per key in windows and says each count once, when its window is over:
// SERVERS SOURCE TARGET DIRECTORY WINDOW_MS GRACE_MS; ends when its input does.

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

public class WindowedCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[2]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, "2");
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        // Its ten seconds are few on a machine that does something else, and end in rebalances.
        settings.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), "60000");
        // By default it looks once a second, and only when a record comes: the last would wait.
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        TimeWindows windows = TimeWindows.ofSizeAndGrace(
            Duration.ofMillis(Long.parseLong(arguments[4])),
            Duration.ofMillis(Long.parseLong(arguments[5])));

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[1], Consumed.with(Serdes.String(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
            .windowedBy(windows)
            .emitStrategy(EmitStrategy.onWindowClose())
            .count()
            .toStream((windowed, count) -> windowed.key() + "@" + windowed.window().start() / 1000)
            .mapValues(String::valueOf)
            .to(arguments[2], Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        while (System.in.read() >= 0) continue;
        streams.close();
    }
}
