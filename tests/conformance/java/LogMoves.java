// Kafka's own UnifiedLog under a script: for each line the stable offset after it and the answer.
//
// args: the partition's directory, the script, the file with all appended bytes one after the other,
//     then the topic's settings as name=value

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

class LogMoves {
    static final ScheduledExecutorService LATER = Executors.newScheduledThreadPool(1);

    /** Runs nothing in time: files that have left the log stay behind as .deleted. */
    static final Scheduler NEVER = new Scheduler() {
        public void startup() {}

        public void shutdown() {}

        public void resizeThreadPool(int size) {}

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            return LATER.schedule(task, 1, TimeUnit.DAYS);
        }
    };

    static final SetTime TIME = new SetTime();
    static UnifiedLog log;
    static ByteBuffer data;

    public static void main(String[] args) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int i = 3; i < args.length; i++) {
            String[] pair = args[i].split("=");
            settings.put(pair[0], pair[1]);
        }
        data = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[2])));
        List<String> script = Files.readAllLines(Path.of(args[1]));
        TIME.now = Long.parseLong(script.get(0).split(" ")[1]);
        log = UnifiedLog.create(new File(args[0]), new LogConfig(settings), 0, 0, NEVER,
            new BrokerTopicStats(), TIME, 300_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false),
            600_000, new LogDirFailureChannel(1), true, Optional.empty());
        for (String line : script) {
            String answer;
            try {
                answer = run(line.split(" "));
            } catch (RecordValidationException error) {
                answer = "error " + Errors.forException(error.invalidException()).code();
            } catch (ApiException error) {
                answer = "error " + Errors.forException(error).code();
            }
            System.out.println(log.lastStableOffset() + " " + answer);
        }
        log.close();
        LATER.shutdownNow();
    }

    static String run(String[] words) throws Exception {
        switch (words[0]) {
            case "time":
                TIME.now = Long.parseLong(words[1]);
                return "";
            case "epoch":
                log.assignEpochStartOffset(Integer.parseInt(words[1]), log.logEndOffset());
                return "";
            case "append":
                return append(AppendOrigin.valueOf(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            case "watermark":
                return "" + log.updateHighWatermark(Long.parseLong(words[1]));
            case "read":
                return read(Long.parseLong(words[1]), Integer.parseInt(words[2]), words[3], words[4].equals("1"));
            case "lookup":
                return log.fetchOffsetByTimestamp(Long.parseLong(words[1]), Optional.empty())
                    .timestampAndOffsetOpt()
                    .map(t -> t.timestamp + " " + t.offset + " " + t.leaderEpoch.orElse(-1))
                    .orElse("none");
            case "start":
                log.maybeIncrementLogStartOffset(
                    Long.parseLong(words[1]), LogStartOffsetIncrementReason.ClientRecordDeletion);
                return "" + log.logStartOffset();
            case "retention":
                log.deleteOldSegments();
                return state();
            case "truncate":
                log.truncateTo(Long.parseLong(words[1]));
                log.updateHighWatermark(log.highWatermark());  // else the stable offset is of before
                return state();
            default:
                return state();
        }
    }

    static String append(AppendOrigin origin, int epoch, int size) throws Exception {
        byte[] batch = new byte[size];
        data.get(batch);
        var info = log.appendAsLeader(MemoryRecords.readableRecords(ByteBuffer.wrap(batch)), epoch, origin,
            RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
        return info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime();
    }

    static String read(long offset, int bytes, String isolation, boolean atLeastOne) throws Exception {
        FetchDataInfo found = log.read(offset, bytes, FetchIsolation.valueOf(isolation), atLeastOne);
        // A broker sends no part of a first batch, either.
        if (found.records.sizeInBytes() == 0 || found.firstEntryIncomplete) return "nothing";
        var place = found.fetchOffsetMetadata;
        long last = offset;
        for (var batch : found.records.batches()) last = batch.lastOffset();
        List<String> aborted = new ArrayList<>();
        for (var one : found.abortedTransactions.orElse(List.of())) {
            // How many more are named, that begin behind the data, is everybody's own business.
            if (one.firstOffset() <= last) aborted.add(one.producerId() + "@" + one.firstOffset());
        }
        return place.segmentBaseOffset + " " + place.relativePositionInSegment + " "
            + found.records.sizeInBytes() + " " + String.join(",", aborted);
    }

    static String state() {
        return log.logStartOffset() + " " + log.highWatermark() + " "
            + log.logEndOffset() + " " + log.logSegments().stream()
                .map(s -> s.baseOffset() + ":" + s.size()).collect(Collectors.joining(","))
            + " " + log.leaderEpochCache().epochEntries().stream()
                .map(e -> e.epoch() + ":" + e.startOffset()).collect(Collectors.joining(","));
    }

    /** Says what the script says. */
    static class SetTime implements Time {
        long now;

        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {}

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new IllegalStateException("nobody waits here");
        }
    }
}
