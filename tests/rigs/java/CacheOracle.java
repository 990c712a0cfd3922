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
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Replays event sequences through Kafka's own metadata cache and prints what the cache answers.
 * It is in Kafka's package because the cache shows itself to nobody else.
 *
 * <p>Input, words parted by one space. A sequence is read whole before anything of its answer is written.
 * <pre>
 * sequence cache|store TOPIC_ID PARTITION TOPIC
 *     opens one: `cache` drives RemoteLogMetadataCache itself, `store` drives RemotePartitionMetadataStore, the way
 *     ConsumerTask feeds it. TOPIC_ID and segment ids are 22 characters of URL-safe base64.
 * initialized
 *     from here on the cache counts as caught up with its topic
 * add SEGMENT_ID START END BROKER MAX_TIMESTAMP EVENT_TIMESTAMP SIZE STATE EPOCHS CUSTOM TXN_INDEX_EMPTY
 *     EPOCHS: EPOCH:OFFSET,... or `-`; CUSTOM: `x` and hex digits, or `-` for none; TXN_INDEX_EMPTY: true or false
 * update SEGMENT_ID BROKER EVENT_TIMESTAMP STATE CUSTOM
 * delete-partition BROKER EVENT_TIMESTAMP STATE
 *     a `store` only
 * record HEX
 *     an event as the bytes of a record's value
 * ask EPOCHS OFFSETS
 *     comma lists, or `-`; asks about every epoch, and about every offset in every epoch
 * end
 *     closes the sequence
 * describe HEX
 *     outside a sequence: asks what Kafka reads in the bytes of a record's value
 * </pre>
 *
 * <p>Output. An exception stands as `!` and the simple name of its class, and nothing stops because of it.
 * <pre>
 * step ok|!EXCEPTION                                   one an event or `initialized`, in order
 * segment SEGMENT_ID STATE START END BROKER EVENT_TIMESTAMP CUSTOM TXN_INDEX_EMPTY
 *                                                      each segment of listAllRemoteLogSegments, ordered by id
 * highest EPOCH OFFSET|-                               highestOffsetForEpoch
 * list EPOCH SEGMENT_ID...                             listRemoteLogSegments, ordered by id
 * find EPOCH SEGMENT_ID|-...                           remoteLogSegmentMetadata, one answer an asked offset
 * txn EPOCH SEGMENT_ID|-...                            nextSegmentWithTxnIndex, one answer an asked offset
 * end
 * described !EXCEPTION | described HEX TEXT            the value written again by Kafka, and its toString()
 * </pre>
 * With `!EXCEPTION` in place of SEGMENT_ID after `segment` or `list`, or of an answer elsewhere. `!EndlessLookUp` is the
 * oracle's own: nextSegmentWithTxnIndex goes round for ever when a segment's leader epochs reach past its end.
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
        List<String[]> sequence = new ArrayList<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("describe")) {
                oracle.describe(words);
                output.flush();
            } else if (words[0].equals("end")) {
                oracle.replay(sequence);
                output.flush();
                sequence.clear();
            } else {
                sequence.add(words);
            }
        }
    }

    private void replay(List<String[]> lines) {
        String[] opening = lines.get(0);
        TopicIdPartition partition = new TopicIdPartition(
            Uuid.fromString(opening[2]), new TopicPartition(opening[4], Integer.parseInt(opening[3])));
        Replica replica = opening[1].equals("cache") ? new CacheReplica() : new StoreReplica(partition);
        for (String[] words : lines.subList(1, lines.size())) {
            if (words[0].equals("ask")) {
                answer(replica, integers(words[1]), integers(words[2]));
            } else {
                answers.println("step " + told(() -> {
                    if (words[0].equals("initialized")) {
                        replica.markInitialized();
                    } else {
                        replica.handle(event(partition, words));
                    }
                    return "ok";
                }));
            }
        }
        answers.println("end");
    }

    private RemoteLogMetadata event(TopicIdPartition partition, String[] words) {
        return switch (words[0]) {
            case "add" -> new RemoteLogSegmentMetadata(
                new RemoteLogSegmentId(partition, Uuid.fromString(words[1])),
                Long.parseLong(words[2]), Long.parseLong(words[3]), Long.parseLong(words[5]),
                Integer.parseInt(words[4]), Long.parseLong(words[6]), Integer.parseInt(words[7]),
                custom(words[10]), RemoteLogSegmentState.valueOf(words[8]), epochs(words[9]),
                Boolean.parseBoolean(words[11]));
            case "update" -> new RemoteLogSegmentMetadataUpdate(
                new RemoteLogSegmentId(partition, Uuid.fromString(words[1])), Long.parseLong(words[3]),
                custom(words[5]), RemoteLogSegmentState.valueOf(words[4]), Integer.parseInt(words[2]));
            case "delete-partition" -> new RemotePartitionDeleteMetadata(
                partition, RemotePartitionDeleteState.valueOf(words[3]), Long.parseLong(words[2]),
                Integer.parseInt(words[1]));
            case "record" -> serde.deserialize(value(words));
            default -> throw new IllegalArgumentException("no event is called " + words[0]);
        };
    }

    private void answer(Replica replica, long[] epochs, long[] offsets) {
        try {
            Map<String, RemoteLogSegmentMetadata> byId = new TreeMap<>();
            replica.listAll().forEachRemaining(segment -> byId.put(name(segment), segment));
            byId.forEach((id, segment) -> answers.println("segment " + id + " " + segment.state()
                + " " + segment.startOffset() + " " + segment.endOffset() + " " + segment.brokerId()
                + " " + segment.eventTimestampMs() + " " + custom(segment.customMetadata())
                + " " + segment.isTxnIdxEmpty()));
        } catch (Exception refused) {
            answers.println("segment " + token(refused));
        }
        for (long wide : epochs) {
            int epoch = (int) wide;
            answers.println("highest " + epoch + " "
                + told(() -> replica.highest(epoch).map(String::valueOf).orElse("-")));
            answers.println(("list " + epoch + " " + told(() -> names(replica.list(epoch)))).stripTrailing());
            answers.println("find " + epoch + each(offsets, offset -> replica.find(epoch, offset)));
            answers.println("txn " + epoch + each(offsets, offset -> replica.nextWithTxnIndex(epoch, offset)));
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

    private static Optional<CustomMetadata> custom(String word) {
        return word.equals("-") ? Optional.empty() : Optional.of(new CustomMetadata(HEX.parseHex(word.substring(1))));
    }

    private static String custom(Optional<CustomMetadata> metadata) {
        return metadata.map(present -> "x" + HEX.formatHex(present.value())).orElse("-");
    }

    private static Map<Integer, Long> epochs(String word) {
        Map<Integer, Long> epochs = new TreeMap<>();
        for (String pair : word.equals("-") ? new String[0] : word.split(",")) {
            int colon = pair.indexOf(':');
            epochs.put(Integer.parseInt(pair.substring(0, colon)), Long.parseLong(pair.substring(colon + 1)));
        }
        return epochs;
    }

    private static long[] integers(String word) {
        return word.equals("-")
            ? new long[0]
            : Stream.of(word.split(",")).mapToLong(Long::parseLong).toArray();
    }

    private interface LookUp {
        Optional<RemoteLogSegmentMetadata> at(long offset) throws Exception;
    }

    /** What replays events and answers about one partition. */
    private interface Replica {
        void markInitialized();

        void handle(RemoteLogMetadata event) throws Exception;

        Iterator<RemoteLogSegmentMetadata> listAll() throws Exception;

        Iterator<RemoteLogSegmentMetadata> list(int epoch) throws Exception;

        Optional<Long> highest(int epoch) throws Exception;

        Optional<RemoteLogSegmentMetadata> find(int epoch, long offset) throws Exception;

        Optional<RemoteLogSegmentMetadata> nextWithTxnIndex(int epoch, long offset) throws Exception;
    }

    private static final class EndlessLookUp extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /** Kafka's cache, with nextSegmentWithTxnIndex kept from going round for ever. */
    private static final class BoundedCache extends RemoteLogMetadataCache {
        private boolean searching;
        private int lookUps;

        @Override
        Optional<RemoteLogSegmentMetadata> nextSegmentWithTxnIndex(int epoch, long offset) {
            searching = true;
            lookUps = 0;
            try {
                return super.nextSegmentWithTxnIndex(epoch, offset);
            } finally {
                searching = false;
            }
        }

        @Override
        Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(int epoch, long offset) {
            lookUps++;
            // a search that ends sees each segment once at most, and then misses
            if (searching && lookUps > idToSegmentMetadata.size() + 1) {
                throw new EndlessLookUp();
            }
            return super.remoteLogSegmentMetadata(epoch, offset);
        }
    }

    private static final class CacheReplica implements Replica {
        private final BoundedCache cache = new BoundedCache();

        @Override
        public void markInitialized() {
            cache.markInitialized();
        }

        @Override
        public void handle(RemoteLogMetadata event) throws Exception {
            if (event instanceof RemoteLogSegmentMetadata segment) {
                cache.addCopyInProgressSegment(segment);
            } else if (event instanceof RemoteLogSegmentMetadataUpdate update) {
                cache.updateRemoteLogSegmentMetadata(update);
            } else {
                throw new UnsupportedOperationException("a cache knows nothing of " + event);
            }
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> listAll() {
            return cache.listAllRemoteLogSegments();
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> list(int epoch) throws Exception {
            return cache.listRemoteLogSegments(epoch);
        }

        @Override
        public Optional<Long> highest(int epoch) {
            return cache.highestOffsetForEpoch(epoch);
        }

        @Override
        public Optional<RemoteLogSegmentMetadata> find(int epoch, long offset) {
            return cache.remoteLogSegmentMetadata(epoch, offset);
        }

        @Override
        public Optional<RemoteLogSegmentMetadata> nextWithTxnIndex(int epoch, long offset) {
            return cache.nextSegmentWithTxnIndex(epoch, offset);
        }
    }

    private static final class StoreReplica implements Replica {
        private final RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();
        private final TopicIdPartition partition;

        StoreReplica(TopicIdPartition partition) {
            this.partition = partition;
            giveBoundedCache();
            store.maybeLoadPartition(partition);
        }

        @SuppressWarnings("unchecked")
        private void giveBoundedCache() {
            try {
                Field caches = RemotePartitionMetadataStore.class.getDeclaredField("idToRemoteLogMetadataCache");
                caches.setAccessible(true);
                ((Map<TopicIdPartition, RemoteLogMetadataCache>) caches.get(store)).put(partition, new BoundedCache());
            } catch (ReflectiveOperationException changed) {
                throw new IllegalStateException("Kafka keeps its caches elsewhere now", changed);
            }
        }

        @Override
        public void markInitialized() {
            store.markInitialized(partition);
        }

        @Override
        public void handle(RemoteLogMetadata event) {
            store.handleRemoteLogMetadata(event);
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> listAll() throws Exception {
            return store.listRemoteLogSegments(partition);
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> list(int epoch) throws Exception {
            return store.listRemoteLogSegments(partition, epoch);
        }

        @Override
        public Optional<Long> highest(int epoch) throws Exception {
            return store.highestLogOffset(partition, epoch);
        }

        @Override
        public Optional<RemoteLogSegmentMetadata> find(int epoch, long offset) throws Exception {
            return store.remoteLogSegmentMetadata(partition, offset, epoch);
        }

        @Override
        public Optional<RemoteLogSegmentMetadata> nextWithTxnIndex(int epoch, long offset) throws Exception {
            return store.nextSegmentWithTxnIndex(partition, epoch, offset);
        }
    }
}
