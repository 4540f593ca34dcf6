import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Writes record batches of every kind into a folder ("write FOLDER"), or reads what is in a folder
 * ("read FOLDER"). Either way it prints what Kafka's own reader finds in each file, or why it refuses.
 */
public class RecordFiles {
    private static final long TIME = 1_700_000_000_000L;
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[1]);
        if (arguments[0].equals("write")) {
            writeData(folder);
            writeControl(folder);
        }
        List<Path> files;
        try (Stream<Path> found = Files.list(folder)) {
            files = found.sorted().toList();
        }
        for (Path file : files) {
            System.out.println("file " + file.getFileName());
            try {
                describe(MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file))));
            } catch (RuntimeException error) {
                System.out.println("refused " + error);
            }
        }
    }

    // ------------------------------------------------------------------------------------ writing

    private static void writeData(Path folder) throws Exception {
        List<Compression> codecs = List.of(
            Compression.NONE,
            Compression.gzip().build(),
            Compression.gzip().level(9).build(),
            Compression.snappy().build(),
            Compression.lz4().build(),
            Compression.lz4().level(17).build(),
            Compression.zstd().build(),
            Compression.zstd().level(19).build(),
            Compression.zstd().level(-7).build());
        for (int codec = 0; codec < codecs.size(); codec++) {
            Compression compression = codecs.get(codec);
            for (byte magic = 0; magic <= 2; magic++) {
                if (magic < 2 && compression.type().name.equals("zstd"))
                    continue;
                String name = "data-" + magic + "-" + compression.type().name + "-" + codec;
                for (TimestampType time : List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)) {
                    if (magic == 0 && time == TimestampType.LOG_APPEND_TIME)
                        continue;
                    MemoryRecordsBuilder builder = builder(magic, compression, time, false);
                    fill(builder, magic);
                    save(folder, name + "-" + time.name, builder.build());
                }
            }
            MemoryRecordsBuilder builder =
                builder(RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, true);
            fill(builder, RecordBatch.MAGIC_VALUE_V2);
            save(folder, "transactional-" + codec, builder.build());
        }
    }

    private static MemoryRecordsBuilder builder(
        byte magic, Compression compression, TimestampType time, boolean transactional
    ) {
        return new MemoryRecordsBuilder(
            ByteBuffer.allocate(1 << 20), magic, compression, time, 1000L, TIME + 5,
            transactional ? 4711L : -1L, (short) (transactional ? 3 : -1), transactional ? 17 : -1,
            transactional, false, magic == 2 ? 8 : -1, Integer.MAX_VALUE);
    }

    private static void fill(MemoryRecordsBuilder builder, byte magic) {
        byte[][] edges = {null, {}, {0}, bytes("an ordinary text")};
        Random random = new Random(42);
        long time = TIME;
        for (byte[] key : edges)
            for (byte[] value : edges)
                builder.append(time += random.nextInt(50) - 10, key, value);
        for (int i = 0; i < 3000; i++)
            builder.append(time += 3, bytes("key " + i % 70), bytes("value number " + i + " of many"));
        byte[] noise = new byte[200_000];
        random.nextBytes(noise);
        builder.append(time, null, noise);
        if (magic == 2) {
            builder.append(time, bytes("k"), bytes("v"), new Header[] {
                new RecordHeader("one", bytes("1")),
                new RecordHeader("one", null),
                new RecordHeader("", new byte[0]),
                new RecordHeader("\u017e", bytes("\u016f")),
            });
        }
    }

    private static void writeControl(Path folder) throws Exception {
        for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            save(folder, "control-" + type, MemoryRecords.withEndTransactionMarker(
                90L, TIME, 6, 4711L, (short) 4, new EndTransactionMarker(type, 12)));
        }
        save(folder, "control-leader", MemoryRecords.withLeaderChangeMessage(90L, TIME, 6, room(),
            new LeaderChangeMessage().setLeaderId(2)
                .setVoters(List.of(voter(1), voter(2), voter(3)))
                .setGrantingVoters(List.of(voter(2), voter(3)))));
        save(folder, "control-header", MemoryRecords.withSnapshotHeaderRecord(90L, TIME, 6, room(),
            new SnapshotHeaderRecord().setLastContainedLogTimestamp(TIME)));
        save(folder, "control-footer", MemoryRecords.withSnapshotFooterRecord(90L, TIME, 6, room(),
            new SnapshotFooterRecord()));
        save(folder, "control-version", MemoryRecords.withKRaftVersionRecord(90L, TIME, 6, room(),
            new KRaftVersionRecord().setKRaftVersion((short) 1)));
        VotersRecord.EndpointCollection endpoints = new VotersRecord.EndpointCollection();
        endpoints.add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("localhost").setPort(9093));
        save(folder, "control-voters", MemoryRecords.withVotersRecord(90L, TIME, 6, room(),
            new VotersRecord().setVoters(List.of(new VotersRecord.Voter()
                .setVoterId(2)
                .setVoterDirectoryId(new Uuid(1L, 2L))
                .setEndpoints(endpoints)
                .setKRaftVersionFeature(new VotersRecord.KRaftVersionFeature()
                    .setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) 1))))));
    }

    private static LeaderChangeMessage.Voter voter(int id) {
        return new LeaderChangeMessage.Voter().setVoterId(id);
    }

    private static ByteBuffer room() {
        return ByteBuffer.allocate(1000);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void save(Path folder, String name, MemoryRecords records) throws Exception {
        ByteBuffer buffer = records.buffer();
        byte[] content = new byte[buffer.remaining()];
        buffer.get(content);
        Files.write(folder.resolve(name), content);
    }

    // ------------------------------------------------------------------------------------ reading

    private static void describe(MemoryRecords records) throws Exception {
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            if (batch.magic() == RecordBatch.MAGIC_VALUE_V2) {
                System.out.printf("batch %s %d-%d epoch %d producer %d %d %d %s%s%s %d%n",
                    batch.compressionType().name, batch.baseOffset(), batch.lastOffset(),
                    batch.partitionLeaderEpoch(), batch.producerId(), batch.producerEpoch(),
                    batch.baseSequence(), batch.timestampType().name,
                    batch.isTransactional() ? " transactional" : "",
                    batch.isControlBatch() ? " control" : "", batch.maxTimestamp());
            }
            for (Record record : batch) {
                record.ensureValid();
                List<String> parts = new ArrayList<>(List.of(
                    "record", "" + record.offset(), "" + record.timestamp(),
                    text(record.hasKey() ? record.key() : null),
                    text(record.hasValue() ? record.value() : null)));
                for (Header header : record.headers())
                    parts.add(text(ByteBuffer.wrap(bytes(header.key()))) + "=" + text(
                        header.value() == null ? null : ByteBuffer.wrap(header.value())));
                System.out.println(String.join(" ", parts));
                if (batch.isControlBatch())
                    System.out.println("control " + control(record));
            }
        }
    }

    private static Object control(Record record) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        return switch (type) {
            case ABORT, COMMIT -> type + " " + EndTransactionMarker.deserialize(record).coordinatorEpoch();
            case LEADER_CHANGE -> ControlRecordUtils.deserializeLeaderChangeMessage(record);
            case SNAPSHOT_HEADER -> ControlRecordUtils.deserializeSnapshotHeaderRecord(record);
            case SNAPSHOT_FOOTER -> ControlRecordUtils.deserializeSnapshotFooterRecord(record);
            case KRAFT_VERSION -> ControlRecordUtils.deserializeKRaftVersionRecord(record);
            case KRAFT_VOTERS -> ControlRecordUtils.deserializeVotersRecord(record);
            default -> type;
        };
    }

    private static String text(ByteBuffer buffer) throws Exception {
        if (buffer == null)
            return "null";
        byte[] content = new byte[buffer.remaining()];
        buffer.duplicate().get(content);
        if (content.length <= 64)
            return "[" + HEX.formatHex(content) + "]";
        return "sha256 " + HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(content));
    }
}
