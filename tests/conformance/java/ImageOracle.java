import java.io.*;
import java.util.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.image.*;
import org.apache.kafka.image.writer.*;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Replays framed metadata records into Kafka's own image; writes the records of its snapshot. */
public class ImageOracle {
    public static void main(String[] arguments) throws Exception {
        MetadataRecordSerde serde = new MetadataRecordSerde();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        try (DataInputStream input = new DataInputStream(new FileInputStream(arguments[0]))) {
            while (input.available() > 0) {
                byte[] frame = new byte[input.readInt()];
                input.readFully(frame);
                ByteBufferAccessor accessor = new ByteBufferAccessor(java.nio.ByteBuffer.wrap(frame));
                delta.replay(serde.read(accessor, frame.length).message());
            }
        }
        MetadataImage image = delta.apply(new MetadataProvenance(1, 1, 1, true));
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        try (DataOutputStream output = new DataOutputStream(new FileOutputStream(arguments[1]))) {
            for (ApiMessageAndVersion record : writer.records()) {
                ObjectSerializationCache cache = new ObjectSerializationCache();
                int size = serde.recordSize(record, cache);
                ByteBufferAccessor accessor = new ByteBufferAccessor(java.nio.ByteBuffer.allocate(size));
                serde.write(record, cache, accessor);
                output.writeInt(size);
                output.write(accessor.buffer().array());
            }
        }
    }
}
