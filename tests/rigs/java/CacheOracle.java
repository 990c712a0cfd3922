package org.apache.kafka.server.log.remote.metadata.storage;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

/**
 * Replays histories of events through Kafka's own RemotePartitionMetadataStore, the way ConsumerTask feeds it, and
 * prints what the store and its caches answer. It is in Kafka's package because they show themselves to nobody else.
 *
 * <p>Input, words parted by one space. A history is read whole before anything of its answer is written.
 * <pre>
 * record HEX
 *     the next event of a history, as the bytes of a record's value
 * ask TOPIC_ID PARTITION TOPIC EPOCHS OFFSETS
 *     asks about a partition as it is then; EPOCHS and OFFSETS are comma lists, or `-`: every epoch is asked about, and
 *     every offset in every epoch
 * end
 *     closes a history
 * describe HEX
 *     outside a history: asks what Kafka reads in the bytes of a record's value
 * </pre>
 *
 * <p>Output. An exception stands as `!` and the simple name of its class, and nothing stops because of it. All ids are
 * 22 characters of URL-safe base64.
 * <pre>
 * took ok|dropped|swallowed EXCEPTION|!EXCEPTION       one for each record: whether it changed anything, and if not
 *                                                      whether the cache or the store kept silent about it
 * partition STATE|-|!EXCEPTION                         what begins the answer to `ask`: how far its removal is
 * segment SEGMENT_ID STATE START END BROKER MAX_TIMESTAMP EVENT_TIMESTAMP SIZE EPOCHS CUSTOM TXN_INDEX_EMPTY
 *                                                      each segment of listAllRemoteLogSegments, ordered by id; EPOCHS
 *                                                      is EPOCH:OFFSET,...; CUSTOM is `x` and hex digits, or `-`
 * highest EPOCH OFFSET|-                               highestOffsetForEpoch
 * list EPOCH SEGMENT_ID...                             listRemoteLogSegments, ordered by id
 * find EPOCH SEGMENT_ID|-...                           remoteLogSegmentMetadata, one answer an asked offset
 * end
 * described !EXCEPTION | described HEX TEXT            the value written again by Kafka, and its toString()
 * </pre>
 * With `!EXCEPTION` in place of SEGMENT_ID after `segment` or `list`, or of an answer elsewhere.
 */
public final class CacheOracle {
    private static final HexFormat HEX = HexFormat.of();
    private final RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
    private final PrintWriter answers;

    private CacheOracle(PrintWriter answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        PrintWriter output = new PrintWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        CacheOracle oracle = new CacheOracle(output);
        List<String[]> history = new ArrayList<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("describe")) {
                oracle.describe(words);
                output.flush();
            } else if (words[0].equals("end")) {
                oracle.replay(history);
                output.flush();
                history.clear();
            } else {
                history.add(words);
            }
        }
    }

    private void replay(List<String[]> lines) {
        WatchedStore store = new WatchedStore();
        for (String[] words : lines) {
            if (words[0].equals("record")) {
                answers.println("took " + told(() -> store.take(serde.deserialize(value(words)))));
            } else {
                TopicIdPartition partition = new TopicIdPartition(
                    Uuid.fromString(words[1]), new TopicPartition(words[3], Integer.parseInt(words[2])));
                answer(store, partition, integers(words[4]), integers(words[5]));
            }
        }
        answers.println("end");
    }

    private void answer(WatchedStore watched, TopicIdPartition partition, long[] epochs, long[] offsets) {
        RemotePartitionMetadataStore store = watched.store;
        answers.println("partition " + watched.removalOf(partition));
        try {
            Map<String, RemoteLogSegmentMetadata> byId = new TreeMap<>();
            store.listRemoteLogSegments(partition).forEachRemaining(segment -> byId.put(name(segment), segment));
            byId.forEach((id, segment) -> answers.println("segment " + id + " " + segment.state()
                + " " + segment.startOffset() + " " + segment.endOffset() + " " + segment.brokerId()
                + " " + segment.maxTimestampMs() + " " + segment.eventTimestampMs()
                + " " + segment.segmentSizeInBytes() + " " + epochs(segment)
                + " " + custom(segment.customMetadata()) + " " + segment.isTxnIdxEmpty()));
        } catch (Exception refused) {
            answers.println("segment " + token(refused));
        }
        for (long wide : epochs) {
            int epoch = (int) wide;
            answers.println("highest " + epoch + " "
                + told(() -> store.highestLogOffset(partition, epoch).map(String::valueOf).orElse("-")));
            answers.println(("list " + epoch + " "
                + told(() -> names(store.listRemoteLogSegments(partition, epoch)))).stripTrailing());
            answers.println("find " + epoch
                + each(offsets, offset -> store.remoteLogSegmentMetadata(partition, offset, epoch)));
        }
    }

    private void describe(String[] words) {
        answers.println("described " + told(() -> {
            RemoteLogMetadata metadata = serde.deserialize(value(words));
            return HEX.formatHex(serde.serialize(metadata)) + " " + metadata;
        }));
    }

    private static String each(long[] offsets, LookUp lookUp) {
        StringBuilder line = new StringBuilder();
        for (long offset : offsets) {
            line.append(' ').append(told(() -> lookUp.at(offset).map(CacheOracle::name).orElse("-")));
        }
        return line.toString();
    }

    private static String told(Callable<String> question) {
        try {
            return question.call();
        } catch (Exception refused) {
            return token(refused);
        }
    }

    private static String token(Exception refused) {
        return "!" + refused.getClass().getSimpleName();
    }

    private static String names(Iterator<RemoteLogSegmentMetadata> segments) {
        List<String> names = new ArrayList<>();
        segments.forEachRemaining(segment -> names.add(name(segment)));
        return names.stream().sorted().collect(Collectors.joining(" "));
    }

    private static String name(RemoteLogSegmentMetadata segment) {
        return segment.remoteLogSegmentId().id().toString();
    }

    private static byte[] value(String[] words) {
        return HEX.parseHex(words.length > 1 ? words[1] : "");
    }

    private static String custom(Optional<CustomMetadata> metadata) {
        return metadata.map(present -> "x" + HEX.formatHex(present.value())).orElse("-");
    }

    private static String epochs(RemoteLogSegmentMetadata segment) {
        return segment.segmentLeaderEpochs().entrySet().stream()
            .map(epoch -> epoch.getKey() + ":" + epoch.getValue()).collect(Collectors.joining(","));
    }

    private static long[] integers(String word) {
        return word.equals("-") ? new long[0] : Arrays.stream(word.split(",")).mapToLong(Long::parseLong).toArray();
    }

    private interface LookUp {
        Optional<RemoteLogSegmentMetadata> at(long offset) throws Exception;
    }

    /** Kafka's store over caches that tell what they do. */
    private static final class WatchedStore {
        private final RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();
        private final Map<TopicIdPartition, WatchedCache> loaded = new HashMap<>();
        private final Map<TopicIdPartition, RemoteLogMetadataCache> caches = field("idToRemoteLogMetadataCache");
        private final Map<TopicIdPartition, RemotePartitionDeleteMetadata> removals =
            field("idToPartitionDeleteMetadata");

        /** Takes an event as a broker does that follows its partition from its first event on. */
        String take(RemoteLogMetadata event) {
            WatchedCache cache = loaded.computeIfAbsent(event.topicIdPartition(), this::load);
            cache.outcome = "ok";
            store.handleRemoteLogMetadata(event);
            return cache.outcome;
        }

        String removalOf(TopicIdPartition partition) {
            RemotePartitionDeleteMetadata removal = removals.get(partition);
            return removal == null ? "-" : removal.state().toString();
        }

        private WatchedCache load(TopicIdPartition partition) {
            WatchedCache cache = new WatchedCache();
            caches.put(partition, cache);
            store.markInitialized(partition);
            return cache;
        }

        @SuppressWarnings("unchecked")
        private <T> Map<TopicIdPartition, T> field(String name) {
            try {
                Field field = RemotePartitionMetadataStore.class.getDeclaredField(name);
                field.setAccessible(true);
                return (Map<TopicIdPartition, T>) field.get(store);
            } catch (ReflectiveOperationException changed) {
                throw new IllegalStateException("Kafka keeps its caches elsewhere now", changed);
            }
        }
    }

    /** Kafka's cache, which tells what came of an event. */
    private static final class WatchedCache extends RemoteLogMetadataCache {
        private String outcome;

        @Override
        void addCopyInProgressSegment(RemoteLogSegmentMetadata segment) {
            RemoteLogSegmentMetadata before = idToSegmentMetadata.get(segment.remoteLogSegmentId());
            super.addCopyInProgressSegment(segment);
            noteChange(before, segment.remoteLogSegmentId());
        }

        @Override
        void updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate update)
                throws RemoteResourceNotFoundException {
            RemoteLogSegmentMetadata before = idToSegmentMetadata.get(update.remoteLogSegmentId());
            try {
                super.updateRemoteLogSegmentMetadata(update);
            } catch (RemoteResourceNotFoundException refused) {
                outcome = "swallowed " + refused.getClass().getSimpleName();
                throw refused;
            }
            noteChange(before, update.remoteLogSegmentId());
        }

        private void noteChange(RemoteLogSegmentMetadata before, RemoteLogSegmentId id) {
            if (idToSegmentMetadata.get(id) == before) {
                outcome = "dropped";
            }
        }
    }
}
