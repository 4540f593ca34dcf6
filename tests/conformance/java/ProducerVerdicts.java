// What Kafka's producer state says to a series of batches: one line for each line of the script.
//
// args: the script, the file with the batches one after the other, the directory for the snapshot

import java.io.File;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.CompletedTxn;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.ProducerAppendInfo;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

public class ProducerVerdicts {
    static ProducerStateManager producers;

    public static void main(String[] args) throws Exception {
        producers = new ProducerStateManager(new TopicPartition("t", 0), new File(args[2]), 60_000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Time.SYSTEM);
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[1])));
        Iterator<MutableRecordBatch> batches = MemoryRecords.readableRecords(data).batches().iterator();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] words = line.split(" ");
            String verdict = "";
            if (words[0].equals("acknowledge")) {
                producers.onHighWatermarkUpdated(Long.parseLong(words[1]));
            } else {
                verdict = append(batches.next(), AppendOrigin.valueOf(words[1]), Short.parseShort(words[2]));
            }
            long unstable = producers.firstUnstableOffset().map(o -> o.messageOffset).orElse(-1L);
            System.out.println(unstable + verdict);
        }
        producers.takeSnapshot();
    }

    static String append(RecordBatch batch, AppendOrigin origin, short version) throws Exception {
        if (origin == AppendOrigin.CLIENT) {
            Optional<ProducerStateEntry> last = producers.lastEntry(batch.producerId());
            if (last.isPresent()) {
                Method find = ProducerStateEntry.class.getDeclaredMethod("findDuplicateBatch", RecordBatch.class);
                find.setAccessible(true);
                Optional<?> found = (Optional<?>) find.invoke(last.get(), batch);
                if (found.isPresent()) {
                    BatchMetadata d = (BatchMetadata) found.get();
                    return " duplicate " + d.firstOffset() + " " + d.lastOffset() + " " + d.timestamp();
                }
            }
        }
        ProducerAppendInfo update = producers.prepareUpdate(batch.producerId(), origin);
        Optional<CompletedTxn> completed;
        try {
            completed = update.append(batch, Optional.of(new LogOffsetMetadata(batch.baseOffset())), version);
        } catch (ApiException error) {
            return " error " + Errors.forException(error).code();
        }
        producers.update(update);
        producers.updateMapEndOffset(batch.lastOffset() + 1);
        if (completed.isEmpty()) return " appended";
        CompletedTxn ended = completed.get();
        long stable = producers.lastStableOffset(ended);
        producers.completeTxn(ended);
        return " completed " + ended.producerId() + " " + ended.firstOffset() + " " + ended.lastOffset()
            + " " + stable + " " + (ended.isAborted() ? 1 : 0);
    }
}
