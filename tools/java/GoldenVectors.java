import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Fills Kafka's generated message classes and prints their bytes: one JSON line per vector.
 *
 * <p>Standard input has a line per message: its name here, its class, the first and the last
 * version. Every version gives five vectors: all defaults, everything set, every null that may be,
 * and two random mixtures. The values come from a generator seeded by name, version and number, so
 * a second run prints the same.
 */
public class GoldenVectors {
    private enum Kind { DEFAULTS, FULL, NULLS, MIXED }

    private static final String[] STRINGS = {
        "", "a", "topic-1", "\u017elu\u0165ou\u010dk\u00fd k\u016f\u0148",
        "\u65e5\u672c\ud83d\ude42", "\"\\\n\0", "x".repeat(130),
    };

    private final Kind kind;
    private final short version;
    private final Random random;

    private GoldenVectors(Kind kind, short version, int seed) {
        this.kind = kind;
        this.version = version;
        this.random = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            Class<?> type = Class.forName(words[1]);
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            short last = Short.parseShort(words[3]);
            for (short version = Short.parseShort(words[2]); version <= last; version++) {
                for (int number = 0; number < 5; number++) {
                    Kind kind = Kind.values()[Math.min(number, 3)];
                    int seed = (words[0] + " " + version + " " + number).hashCode();
                    Message message = (Message) create(type);
                    new GoldenVectors(kind, version, seed).fill(message, schemas[version]);
                    out.print("{\"name\":\"" + words[0] + "\",\"version\":" + version);
                    out.print(",\"bytes\":\"" + hex(encode(message, version)) + "\",\"values\":");
                    out.println(json(message) + "}");
                }
            }
        }
        out.flush();
    }

    /** Sets the fields that the version has, as its schema lists them; the rest stays default. */
    private void fill(Object owner, Schema schema) throws ReflectiveOperationException {
        Map<String, Field> fields = new HashMap<>();
        for (Field field : fieldsOf(owner.getClass())) {
            fields.put(squashed(field.getName()), field);
        }
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                for (var tagged : fieldsOf((TaggedFields) bound.def.type)) {
                    if (kind != Kind.MIXED || random.nextBoolean()) {
                        set(owner, fields.get(squashed(tagged.name)), tagged.type);
                    }
                }
            } else {
                set(owner, fields.get(squashed(bound.def.name)), bound.def.type);
            }
        }
    }

    private void set(Object owner, Field field, Type type) throws ReflectiveOperationException {
        if (kind == Kind.DEFAULTS) {
            if (isRecords(type) && !mayBeNull(owner, field)) {
                field.set(owner, records(field.getType(), new byte[0]));
            }
            return;
        }
        boolean wantsNull = kind == Kind.NULLS || kind == Kind.MIXED && random.nextInt(3) == 0;
        boolean isUnclear = type instanceof Schema || isRecords(type);
        if (wantsNull && (isUnclear ? mayBeNull(owner, field) : type.isNullable())) {
            field.set(owner, null);
        } else if (type.isArray()) {
            field.set(owner, collection(field, type.arrayElementType().get()));
        } else {
            field.set(owner, value(field.getType(), type));
        }
    }

    /** A schema does not always say whether structs and records may be null; writing them does. */
    private boolean mayBeNull(Object owner, Field field) throws ReflectiveOperationException {
        Message probe = (Message) create(owner.getClass());
        field.set(probe, null);
        try {
            encode(probe, version);
            return true;
        } catch (NullPointerException refused) {
            return false;
        }
    }

    @SuppressWarnings("unchecked")
    private Object collection(Field field, Type element) throws ReflectiveOperationException {
        Collection<Object> values = field.getType() == List.class
            ? new ArrayList<>() : (Collection<Object>) create(field.getType());
        ParameterizedType generic = (ParameterizedType) (field.getType() == List.class
            ? field.getGenericType() : field.getType().getGenericSuperclass());
        Class<?> type = (Class<?>) generic.getActualTypeArguments()[0];
        int count = kind == Kind.MIXED ? random.nextInt(3) : 1 + random.nextInt(2);
        if (!(element instanceof Schema) && random.nextInt(40) == 0) {
            count = 130;  // the compact count takes two bytes
        }
        for (int index = 0; index < count; index++) {
            values.add(value(type, element));
        }
        return values;
    }

    private Object value(Class<?> type, Type wire) throws ReflectiveOperationException {
        if (wire instanceof Schema) {
            Object struct = create(type);
            fill(struct, (Schema) wire);
            return struct;
        } else if (type == boolean.class) {
            return kind == Kind.FULL || random.nextBoolean();
        } else if (wire == Type.UINT16) {
            return (int) integer(0, 0xffff);
        } else if (wire == Type.UNSIGNED_INT32) {
            return integer(0, 0xffffffffL);
        } else if (type == byte.class || type == Byte.class) {
            return (byte) integer(Byte.MIN_VALUE, Byte.MAX_VALUE);
        } else if (type == short.class || type == Short.class) {
            return (short) integer(Short.MIN_VALUE, Short.MAX_VALUE);
        } else if (type == int.class || type == Integer.class) {
            return (int) integer(Integer.MIN_VALUE, Integer.MAX_VALUE);
        } else if (type == long.class || type == Long.class) {
            return integer(Long.MIN_VALUE, Long.MAX_VALUE);
        } else if (type == double.class) {
            return random.nextInt(1000) / 8.0;
        } else if (type == String.class) {
            return STRINGS[random.nextInt(STRINGS.length)];
        } else if (type == Uuid.class) {
            return new Uuid(random.nextLong(), random.nextLong());
        } else if (type == byte[].class) {
            return bytes();
        } else if (type == ByteBuffer.class) {
            return ByteBuffer.wrap(bytes());
        } else if (isRecords(wire)) {
            return records(type, bytes());
        }
        throw new IllegalArgumentException(type + " " + wire);
    }

    private long integer(long least, long greatest) {
        long middle = least / 2 + greatest / 2 + 100;
        long[] choices = {0, 1, 2, 3, least, greatest, Math.max(least, -1), middle};
        return choices[random.nextInt(choices.length)];
    }

    private byte[] bytes() {
        byte[] bytes = new byte[random.nextInt(20) == 0 ? 130 : random.nextInt(4)];
        random.nextBytes(bytes);
        return bytes;
    }

    private static boolean isRecords(Type type) {
        return type.toString().endsWith("RECORDS");  // RECORDS, COMPACT_RECORDS, nullable or not
    }

    /** Kafka 4.4 moved these classes to another package. */
    private static Object records(Class<?> type, byte[] bytes) throws ReflectiveOperationException {
        Class<?> records = Class.forName(type.getPackageName() + ".MemoryRecords");
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return records.getMethod("readableRecords", ByteBuffer.class).invoke(null, buffer);
    }

    private static byte[] encode(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static Object create(Class<?> type) throws ReflectiveOperationException {
        return type.getConstructor().newInstance();
    }

    /** Kafka 3.9 has no getter. */
    @SuppressWarnings("unchecked")
    private static Collection<org.apache.kafka.common.protocol.types.Field> fieldsOf(
        TaggedFields section
    ) throws ReflectiveOperationException {
        Field map = TaggedFields.class.getDeclaredField("fields");
        map.setAccessible(true);
        var fields = (Map<Integer, org.apache.kafka.common.protocol.types.Field>) map.get(section);
        return fields.values();
    }

    private static List<Field> fieldsOf(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            // Elements of hash collections also carry the links between them.
            boolean isLink = field.getName().equals("next") || field.getName().equals("prev");
            boolean isDeclared = !field.getName().startsWith("_") && !isLink;
            if (isDeclared && !Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                fields.add(field);
            }
        }
        return fields;
    }

    private static String squashed(String name) {
        return name.replace("_", "").toLowerCase();
    }

    private static String json(Object value) throws ReflectiveOperationException {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        } else if (value instanceof String) {
            return quoted((String) value);
        } else if (value instanceof byte[]) {
            return quoted(hex((byte[]) value));
        } else if (value instanceof ByteBuffer) {
            ByteBuffer buffer = ((ByteBuffer) value).duplicate();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return quoted(hex(bytes));
        } else if (value.getClass().getSimpleName().equals("MemoryRecords")) {
            return json(value.getClass().getMethod("buffer").invoke(value));
        } else if (value instanceof Uuid) {
            Uuid uuid = (Uuid) value;
            long[] halves = {uuid.getMostSignificantBits(), uuid.getLeastSignificantBits()};
            return quoted(String.format("%016x%016x", halves[0], halves[1]));
        } else if (value instanceof Collection) {
            List<String> elements = new ArrayList<>();
            for (Object element : (Collection<?>) value) {
                elements.add(json(element));
            }
            return "[" + String.join(",", elements) + "]";
        }
        List<String> members = new ArrayList<>();
        for (Field field : fieldsOf(value.getClass())) {
            members.add(quoted(squashed(field.getName())) + ":" + json(field.get(value)));
        }
        return "{" + String.join(",", members) + "}";
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            boolean isPlain = c >= ' ' && c != '"' && c != '\\';
            quoted.append(isPlain ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        }
        return quoted.append('"').toString();
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }
}
