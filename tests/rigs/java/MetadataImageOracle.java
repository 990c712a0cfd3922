import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Kafka's own image of a cluster: what a broker knows after it loaded a snapshot and records of the metadata log.
 *
 * <p>Reads lines: `snapshot VALUE...`, at most once and first, has the values (hex) of a snapshot's records; `batch OFFSET
 * VALUE...` a batch of the log; `end` asks for the answer, one line of JSON: `records`, those that the image writes
 * into a snapshot, each with `type`, `version` and `data`; `faults`, what Kafka refused to apply.
 */
public final class MetadataImageOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private MetadataImage image = MetadataImage.EMPTY;
    private final List<String> faults = new ArrayList<>();
    private final MetadataBatchLoader loader;

    private MetadataImageOracle() throws Exception {
        FaultHandler faultHandler = (message, cause) -> {
            faults.add(message + ": " + cause);
            return new RuntimeException(message, cause);
        };
        MetadataBatchLoader.MetadataUpdater updater = (delta, loaded, manifest) -> image = loaded;
        // releases differ in a last argument, which a null stands for
        var constructor = MetadataBatchLoader.class.getConstructors()[0];
        Object[] arguments = new Object[constructor.getParameterCount()];
        arguments[0] = new LogContext();
        arguments[1] = Time.SYSTEM;
        arguments[2] = faultHandler;
        arguments[3] = updater;
        if (arguments.length > 4) {
            arguments[4] = constructor.getParameterTypes()[4].getField("TRUE").get(null);
        }
        loader = (MetadataBatchLoader) constructor.newInstance(arguments);
    }

    public static void main(String[] noArguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        MetadataImageOracle oracle = new MetadataImageOracle();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "snapshot" -> oracle.loadSnapshot(words);
                case "batch" -> oracle.loadBatch(words);
                default -> {
                    System.out.println(oracle.answer());
                    System.out.flush();
                    oracle = new MetadataImageOracle();
                }
            }
        }
    }

    private void loadSnapshot(String[] words) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        for (ApiMessageAndVersion record : records(words, 1)) {
            delta.replay(record.message());
        }
        delta.finishSnapshot();
        image = delta.apply(provenance());
        loader.resetToImage(image);
    }

    private void loadBatch(String[] words) throws Exception {
        LeaderAndEpoch leader = LeaderAndEpoch.UNKNOWN;
        loader.loadBatch(Batch.data(Long.parseLong(words[1]), 1, 0, 100, records(words, 2)), leader);
        for (Method method : MetadataBatchLoader.class.getMethods()) {
            if (method.getName().equals("maybeFlushBatches")) {
                method.invoke(loader, method.getParameterCount() == 1 ? new Object[] {leader} : new Object[] {leader, true});
            }
        }
    }

    private static List<ApiMessageAndVersion> records(String[] words, int from) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        for (int at = from; at < words.length; at++) {
            byte[] value = HexFormat.of().parseHex(words[at]);
            records.add(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(value)), value.length));
        }
        return records;
    }

    private static MetadataProvenance provenance() throws Exception {
        var constructor = MetadataProvenance.class.getConstructors()[0];
        return (MetadataProvenance) (constructor.getParameterCount() == 3
            ? constructor.newInstance(0L, 0, 0L) : constructor.newInstance(0L, 0, 0L, true));
    }

    private String answer() throws Exception {
        ImageWriterOptions.Builder options = new ImageWriterOptions.Builder(image).setLossHandler(loss -> { });
        for (Method method : ImageWriterOptions.Builder.class.getMethods()) {
            if (method.getName().equals("setEligibleLeaderReplicasEnabled")) {
                method.invoke(options, true);
            }
        }
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, options.build());
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode written = answer.putArray("records");
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectNode one = written.addObject();
            one.put("type", MetadataRecordType.fromId(record.message().apiKey()).name());
            one.put("version", record.version());
            one.set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
        }
        ArrayNode told = answer.putArray("faults");
        faults.forEach(told::add);
        return JSON.writeValueAsString(answer);
    }
}
