import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.utils.ImplicitLinkedHashCollection;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Random records of every type and version that this release knows, of the metadata log and of its control batches,
 * encoded by Kafka and converted to JSON by Kafka.
 *
 * <p>Arguments: FILE COUNT SEED. Writes COUNT lines for each type and version: a JSON object with `value`, the record's
 * value in base64, and `document`, what dump-log's decoder makes of it; for control records `control`, the name of the
 * message.
 */
public final class MetadataRecordSamples {
    private static final int ATTEMPTS = 50;
    private static final long[] EDGES = {0, 1, -1, 127, -128, 32767, -32768, Integer.MAX_VALUE, Integer.MIN_VALUE};
    private static final double[] DOUBLES = {0, -0.0, 1, 1e300, -2.5e-7, Double.NaN, Double.POSITIVE_INFINITY, 0.1};
    private static final String[] CHARACTERS = {"a", "Z", "\"", "\\", "\n", "\0", "\u007f", "ü", "\u2028", "\uffff", "😀"};

    private final Random random;
    private final PrintWriter out;
    private int records = 0;

    private MetadataRecordSamples(Random random, PrintWriter out) {
        this.random = random;
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        Random random = new Random(Long.parseLong(arguments[2]));
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[0]), StandardCharsets.UTF_8))) {
            MetadataRecordSamples samples = new MetadataRecordSamples(random, out);
            for (MetadataRecordType type : MetadataRecordType.values()) {
                for (short version = 0; version <= type.highestSupportedVersion(); version++) {
                    for (int i = 0; i < count; i++) {
                        samples.metadataRecord(type, version);
                    }
                }
            }
            for (int i = 0; i < count; i++) {
                samples.controlRecords();
            }
            System.out.println("records=" + samples.records);
        }
    }

    private void metadataRecord(MetadataRecordType type, short version) throws Exception {
        ApiMessage message = (ApiMessage) filled(type::newMetadataRecord, version);
        ApiMessageAndVersion record = new ApiMessageAndVersion(message, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer value = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(value));
        ObjectNode document = JsonNodeFactory.instance.objectNode();
        document.put("type", MetadataRecordType.fromId(message.apiKey()).toString());
        document.put("version", version);
        document.set("data", MetadataJsonConverters.writeJson(message, version));
        sample(value.array()).set("document", document);
        finish();
    }

    private void controlRecords() throws Exception {
        for (short version = 0; version <= LeaderChangeMessage.HIGHEST_SUPPORTED_VERSION; version++) {
            LeaderChangeMessage message = (LeaderChangeMessage) filled(LeaderChangeMessage::new, version);
            control(message.setVersion(version), version, LeaderChangeMessageJsonConverter.write(message, version));
        }
        SnapshotHeaderRecord header = (SnapshotHeaderRecord) filled(SnapshotHeaderRecord::new, (short) 0);
        control(header.setVersion((short) 0), (short) 0, SnapshotHeaderRecordJsonConverter.write(header, (short) 0));
        SnapshotFooterRecord footer = new SnapshotFooterRecord();
        control(footer, (short) 0, SnapshotFooterRecordJsonConverter.write(footer, (short) 0));
        KRaftVersionRecord kraft = (KRaftVersionRecord) filled(KRaftVersionRecord::new, (short) 0);
        control(kraft.setVersion((short) 0), (short) 0, KRaftVersionRecordJsonConverter.write(kraft, (short) 0));
        VotersRecord voters = (VotersRecord) filled(VotersRecord::new, (short) 0);
        control(voters.setVersion((short) 0), (short) 0, VotersRecordJsonConverter.write(voters, (short) 0));
    }

    private void control(Message message, short version, JsonNode document) {
        ObjectNode sample = sample(encoded(message, version));
        sample.put("control", message.getClass().getSimpleName());
        sample.set("document", document);
        finish();
    }

    private ObjectNode line;

    private ObjectNode sample(byte[] value) {
        line = JsonNodeFactory.instance.objectNode();
        line.put("value", Base64.getEncoder().encodeToString(value));
        return line;
    }

    private void finish() {
        out.println(line);
        records++;
    }

    /** A message with random values of those fields that Kafka writes in this version. */
    private Message filled(Supplier<? extends Message> maker, short version) throws Exception {
        Message message = maker.get();
        for (Method setter : setters(message.getClass())) {
            for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                Object value = value(setter.getGenericParameterTypes()[0]);
                Message probe = maker.get();
                setter.invoke(probe, value);
                if (isWritten(probe, version)) {
                    setter.invoke(message, value);
                    break;
                }
            }
        }
        return message;
    }

    private static boolean isWritten(Message message, short version) {
        try {
            encoded(message, version);
            return true;
        } catch (UnsupportedVersionException | NullPointerException refused) {
            return false;
        }
    }

    private static byte[] encoded(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer value = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(value), cache, version);
        return value.array();
    }

    private static List<Method> setters(Class<?> type) {
        return Stream.of(type.getDeclaredMethods())
            .filter(method -> method.getName().startsWith("set") && method.getParameterCount() == 1)
            .filter(method -> !method.isSynthetic())
            .filter(method -> method.getReturnType() == type)
            .filter(method -> !method.getName().equals("setPrev") && !method.getName().equals("setNext"))
            .sorted(Comparator.comparing(Method::getName))
            .toList();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object value(Type type) throws Exception {
        if (type instanceof ParameterizedType) {
            return random.nextInt(4) == 0 ? null : list(((ParameterizedType) type).getActualTypeArguments()[0]);
        }
        Class<?> kind = (Class<?>) type;
        if (kind == boolean.class) return random.nextBoolean();
        if (kind == byte.class) return (byte) number();
        if (kind == short.class) return (short) number();
        if (kind == Short.class) return (short) number();
        if (kind == int.class && random.nextInt(3) == 0) return random.nextInt(1 << 16);
        if (kind == int.class || kind == Integer.class) return (int) number();
        if (kind == long.class) return number();
        if (kind == double.class) return DOUBLES[random.nextInt(DOUBLES.length)];
        if (kind == Uuid.class) return random.nextInt(4) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), number());
        if (kind == String.class) return random.nextInt(4) == 0 ? null : text();
        if (kind == byte[].class) return bytes();
        Object made = kind.getDeclaredConstructor().newInstance();
        if (made instanceof ImplicitLinkedHashCollection) {
            Type base = kind.getGenericSuperclass();
            ((Collection) made).addAll(list(((ParameterizedType) base).getActualTypeArguments()[0]));
            return made;
        }
        for (Method setter : setters(kind)) {
            Object value = value(setter.getGenericParameterTypes()[0]);
            if (value != null && random.nextInt(4) > 0) {
                set(made, setter, value);
            }
        }
        return made;
    }

    /** Leaves out what the setter refuses: a port beyond 16 bits. */
    private static void set(Object made, Method setter, Object value) throws IllegalAccessException {
        try {
            setter.invoke(made, value);
        } catch (InvocationTargetException refused) {
            // the field keeps its default
        }
    }

    private List<Object> list(Type element) throws Exception {
        List<Object> values = new ArrayList<>();
        for (int size = random.nextInt(4); size > 0; size--) {
            Object value = value(element);
            if (value != null) {
                values.add(value);
            }
        }
        return values;
    }

    private long number() {
        return random.nextBoolean() ? EDGES[random.nextInt(EDGES.length)] : random.nextLong();
    }

    private String text() {
        StringBuilder text = new StringBuilder();
        int size = random.nextInt(20) == 0 ? 200 : random.nextInt(12);
        for (; size > 0; size--) {
            text.append(CHARACTERS[random.nextInt(CHARACTERS.length)]);
        }
        return text.toString();
    }

    private byte[] bytes() {
        byte[] bytes = new byte[random.nextInt(40)];
        random.nextBytes(bytes);
        return bytes;
    }
}
