import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.ValidOffsetAndEpoch;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.util.Scheduler;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;

/**
 * Kafka's own metadata log on a folder, of which it renames what it would delete to `.deleted`.
 *
 * <p>Each line asks about one folder: FOLDER RETENTION_MS RETENTION_BYTES NOW_MS [OFFSET:EPOCH...]. The answer is a line of
 * JSON: `answers`, what a follower with that last offset and epoch is told, before anything is deleted; `cleaned`, the
 * names in the folder afterwards; `logStartOffset` then.
 */
public final class MetadataLogOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] noArguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ")));
            System.out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        File folder = new File(words[0]);
        AbstractConfig config = new AbstractConfig(MetadataLogConfig.CONFIG_DEF, Map.of(
            MetadataLogConfig.METADATA_MAX_RETENTION_MILLIS_CONFIG, words[1],
            MetadataLogConfig.METADATA_MAX_RETENTION_BYTES_CONFIG, words[2]), false);
        KafkaRaftLog log = KafkaRaftLog.createLog(
            new TopicPartition("__cluster_metadata", 0), Uuid.METADATA_TOPIC_ID, folder,
            new MockTime(0, Long.parseLong(words[3]), 0), new Idle(), new MetadataLogConfig(config), 1);
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode answers = answer.putArray("answers");
        for (String follower : Arrays.asList(words).subList(4, words.length)) {
            String[] at = follower.split(":");
            ValidOffsetAndEpoch told = log.validateOffsetAndEpoch(Long.parseLong(at[0]), Integer.parseInt(at[1]));
            answers.addArray().add(told.kind().name()).add(told.offsetAndEpoch().offset()).add(told.offsetAndEpoch().epoch());
        }
        log.updateHighWatermark(new LogOffsetMetadata(log.endOffset().offset()));
        log.maybeClean();
        ArrayNode cleaned = answer.putArray("cleaned");
        String[] names = folder.list();
        Arrays.sort(names);
        Arrays.asList(names).forEach(cleaned::add);
        answer.put("logStartOffset", log.startOffset());
        return JSON.writeValueAsString(answer);
    }

    /** Never does what is put off: what Kafka would delete later keeps its new name. */
    private static final class Idle implements Scheduler {
        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            return null;
        }

        @Override
        public void resizeThreadPool(int newSize) { }
    }
}
