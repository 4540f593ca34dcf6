// Compacts partition directories with Apache Kafka's own cleaner and says how long each took.
//
// Arguments: first dirty offset, now in ms, delete.retention.ms, segment.bytes, bytes of the offset
// map, then directories named topic-partition, whose last segment is the active one. Prints for
// each: where the compaction ended, records read, records kept, nanoseconds.

import java.io.File;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

class Compact {
    static final int IO_BYTES = 512 << 10;

    /** Runs nothing: the old files stay behind as .deleted. */
    static final Scheduler NEVER = new Scheduler() {
        public void startup() {}

        public void shutdown() {}

        public void resizeThreadPool(int size) {}

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            return null;
        }
    };

    public static void main(String[] arguments) throws Exception {
        long firstDirty = Long.parseLong(arguments[0]);
        long nowMs = Long.parseLong(arguments[1]);
        Time time = new FixedTime(nowMs);
        LogConfig config = new LogConfig(Map.of(
                "cleanup.policy", "compact",
                "delete.retention.ms", arguments[2],
                "internal.segment.bytes", arguments[3],
                "segment.ms", String.valueOf(Long.MAX_VALUE)));
        var map = new SkimpyOffsetMap(Integer.parseInt(arguments[4]));
        var throttler = new Throttler(Double.MAX_VALUE, 300, "io", "bytes", Time.SYSTEM);
        for (int i = 5; i < arguments.length; i++) {
            var cleaner = new Cleaner(
                    0, map, IO_BYTES, IO_BYTES, 0.9, throttler, time, partition -> {});
            UnifiedLog log = open(new File(arguments[i]), config, time);
            log.updateHighWatermark(log.logEndOffset());
            long end = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
            long began = System.nanoTime();
            var done = cleaner.doClean(new LogToClean(log, firstDirty, end, false), nowMs);
            long nanos = System.nanoTime() - began;
            var stats = done.getValue();
            System.out.printf("%d %d %d %d%n",
                    done.getKey(), stats.messagesRead(), stats.messagesWritten(), nanos);
        }
    }

    static UnifiedLog open(File directory, LogConfig config, Time time) throws Exception {
        return UnifiedLog.create(directory, config, 0, 0, NEVER, new BrokerTopicStats(), time,
                300_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000,
                new LogDirFailureChannel(1), false, Optional.empty());
    }

    /** The wall clock stands still, so that nothing expires. */
    record FixedTime(long milliseconds) implements Time {
        public long nanoseconds() {
            return Time.SYSTEM.nanoseconds();
        }

        public void sleep(long ms) {
            Time.SYSTEM.sleep(ms);
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs)
                throws InterruptedException {
            Time.SYSTEM.waitObject(object, condition, deadlineMs);
        }
    }
}
