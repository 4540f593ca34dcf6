// Kafka's own classes on the files of a log: `read` prints what they find in a directory of ours,
// `write` fills one with theirs.

import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.TransactionIndex;

public class LogFormats {
    static final long BASE = 1000;
    static final LogDirFailureChannel FAILURES = new LogDirFailureChannel(1);

    public static void main(String[] args) throws Exception {
        File directory = new File(args[1]);
        if (args[0].equals("read")) read(directory);
        else write(directory);
    }

    static File segment(File directory, String suffix) {
        return new File(directory, String.format("%020d%s", BASE, suffix));
    }

    static void read(File directory) throws Exception {
        OffsetIndex offsets = new OffsetIndex(segment(directory, ".index"), BASE, 1 << 20, false);
        offsets.sanityCheck();
        for (int n = 0; n < offsets.entries(); n++) {
            OffsetPosition entry = offsets.entry(n);
            System.out.println("index " + entry.offset() + " " + entry.position());
        }
        TimeIndex times = new TimeIndex(segment(directory, ".timeindex"), BASE, 1 << 20, false);
        times.sanityCheck();
        for (int n = 0; n < times.entries(); n++) {
            TimestampOffset entry = times.entry(n);
            System.out.println("timeindex " + entry.timestamp() + " " + entry.offset());
        }
        try (TransactionIndex aborted = new TransactionIndex(BASE, segment(directory, ".txnindex"))) {
            aborted.sanityCheck();
            for (AbortedTxn entry : aborted.allAbortedTxns()) {
                System.out.println("txnindex " + entry.producerId() + " " + entry.firstOffset() + " "
                    + entry.lastOffset() + " " + entry.lastStableOffset());
            }
        }
        for (ProducerStateEntry entry : ProducerStateManager.readSnapshot(segment(directory, ".snapshot"))) {
            System.out.println("snapshot " + entry.producerId() + " " + entry.producerEpoch() + " "
                + entry.coordinatorEpoch() + " " + entry.lastTimestamp() + " "
                + entry.currentTxnFirstOffset().orElse(-1) + " " + entry.firstDataOffset() + " "
                + entry.lastDataOffset());
        }
        for (EpochEntry entry : epochs(directory).read()) {
            System.out.println("epoch " + entry.epoch() + " " + entry.startOffset());
        }
        for (Map.Entry<TopicPartition, Long> entry : offsetCheckpoint(directory).read().entrySet()) {
            System.out.println("checkpoint " + entry.getKey() + " " + entry.getValue());
        }
        System.out.println("topic " + partition(directory).read().topicId());
        System.out.println("clean " + new CleanShutdownFileHandler(directory.getPath()).read().getAsLong());
        MetaProperties meta = new MetaProperties.Builder(
            PropertiesUtils.readPropertiesFile(new File(directory, "meta.properties").getPath())).build();
        System.out.println("meta " + meta);
    }

    static void write(File directory) throws Exception {
        OffsetIndex offsets = new OffsetIndex(segment(directory, ".index"), BASE, 1 << 16);
        TimeIndex times = new TimeIndex(segment(directory, ".timeindex"), BASE, 1 << 16);
        for (int n = 1; n <= 2000; n++) {
            offsets.append(BASE + 3 * n, 4096 * n);
            times.maybeAppend(1_700_000_000_000L + n / 2, BASE + 3 * n);
        }
        // Not closed, as if the process had died here: the files keep their tails of zeros.
        offsets.flush();
        times.flush();
        try (TransactionIndex aborted = new TransactionIndex(BASE, segment(directory, ".txnindex"))) {
            aborted.append(new AbortedTxn(7, BASE + 1, BASE + 10, BASE + 11));
            aborted.append(new AbortedTxn(8, BASE + 5, BASE + 20, BASE + 6));
        }
        Map<Long, ProducerStateEntry> producers = new TreeMap<>();
        producers.put(7L, new ProducerStateEntry(7, (short) 3, 4, 1234, OptionalLong.of(BASE + 5)));
        producers.put(8L, new ProducerStateEntry(8, (short) 0, -1, -1, OptionalLong.empty()));
        ProducerStateManager.writeSnapshot(segment(directory, ".snapshot"), producers, true);
        epochs(directory).write(List.of(new EpochEntry(0, 0), new EpochEntry(5, 1234)));
        offsetCheckpoint(directory).write(
            Map.of(new TopicPartition("a.b_c-d", 3), 17L, new TopicPartition("x", 0), Long.MAX_VALUE));
        PartitionMetadataFile partition = partition(directory);
        partition.record(new Uuid(-2, 77));
        partition.maybeFlush();
        new CleanShutdownFileHandler(directory.getPath()).write(99);
        MetaProperties meta = new MetaProperties.Builder().setVersion(MetaPropertiesVersion.V1)
            .setClusterId("a=b:c #!\\d==").setNodeId(4).setDirectoryId(new Uuid(1, -1)).build();
        PropertiesUtils.writePropertiesFile(
            meta.toProperties(), new File(directory, "meta.properties").getPath(), true);
    }

    static LeaderEpochCheckpointFile epochs(File directory) throws Exception {
        return new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(directory), FAILURES);
    }

    static OffsetCheckpointFile offsetCheckpoint(File directory) throws Exception {
        return new OffsetCheckpointFile(
            new File(directory, "recovery-point-offset-checkpoint"), FAILURES);
    }

    static PartitionMetadataFile partition(File directory) {
        return new PartitionMetadataFile(PartitionMetadataFile.newFile(directory), FAILURES);
    }
}
