import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.TreeMap;

/**
 * Writes a log of the metadata topic as brokers write it: one event a batch, by an idempotent producer, copies and
 * deletions of several partitions in between each other, the oldest segments of each partition deleted first.
 * The log is written as it comes: memory does not grow with the number of events.
 *
 * <p>Arguments: LOG_FILE EVENTS LIVE_SHARE PARTITIONS SEED. LIVE_SHARE, from 0 to 1, is the share of all segments that
 * are to be neither deleted nor under deletion at the end. Prints one line of NAME=NUMBER words: `bytes`, `segments`,
 * and how many segments ended in each state.
 */
public final class MetadataLogGenerator {
    private static final int TOPIC_PARTITIONS = 3;
    private static final int BROKERS = 3;
    private static final int CONCURRENT_OPERATIONS = 6;
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;

    private final RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
    private final Map<RemoteLogSegmentState, Long> finalStates = new EnumMap<>(RemoteLogSegmentState.class);
    private final List<Partition> partitions = new ArrayList<>();
    private final List<Partition> round = new ArrayList<>();
    private final List<Operation> running = new ArrayList<>();
    private final Deque<Operation> dueDeletions = new ArrayDeque<>();
    private final ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
    private final OutputStream log;
    private final long events;
    private final long liveSegmentsEach;
    private final long seed;
    private final Random random;
    private long offset;
    private long bytes;
    private long segments;
    private long clock = FIRST_TIMESTAMP;

    private MetadataLogGenerator(OutputStream log, long events, double liveShare, int partitionCount, long seed) {
        this.log = log;
        this.events = events;
        this.seed = seed;
        this.random = new Random(seed);
        // a live segment has two events, a deleted one four
        double expectedSegments = events / (4 - 2 * liveShare);
        this.liveSegmentsEach = Math.round(expectedSegments * liveShare / partitionCount);
        for (int number = 0; number < partitionCount; number++) {
            partitions.add(new Partition(number, seed));
        }
    }

    public static void main(String[] arguments) throws IOException {
        try (OutputStream log = new BufferedOutputStream(Files.newOutputStream(Path.of(arguments[0])), 1 << 20)) {
            new MetadataLogGenerator(log, Long.parseLong(arguments[1]), Double.parseDouble(arguments[2]),
                Integer.parseInt(arguments[3]), Long.parseLong(arguments[4])).generate();
        }
    }

    private void generate() throws IOException {
        while (offset < events) {
            boolean begin = running.isEmpty()
                || (running.size() < CONCURRENT_OPERATIONS && random.nextInt(2) == 0);
            if (begin && !dueDeletions.isEmpty()) {
                beginDeletion(dueDeletions.remove());
            } else if (begin) {
                beginCopy();
            } else {
                finish(running.remove(random.nextInt(running.size())));
            }
        }
        StringBuilder summary = new StringBuilder("bytes=" + bytes + " segments=" + segments);
        for (RemoteLogSegmentState state : RemoteLogSegmentState.values()) {
            summary.append(' ').append(state).append('=').append(finalStates.getOrDefault(state, 0L));
        }
        System.out.println(summary);
    }

    private void beginCopy() throws IOException {
        if (round.isEmpty()) {
            round.addAll(partitions);
            Collections.shuffle(round, random);
        }
        Partition partition = round.remove(round.size() - 1);
        // a partition's segments are copied one after the other
        Optional<Operation> earlier = running.stream().filter(operation -> operation.copies(partition)).findFirst();
        if (earlier.isPresent()) {
            running.remove(earlier.get());
            finish(earlier.get());
        }
        Operation copy = new Operation(partition, partition.nextSegment++, RemoteLogSegmentState.COPY_SEGMENT_FINISHED);
        running.add(copy);
        segments++;
        write(partition.started(segmentId(copy), tick(), random), RemoteLogSegmentState.COPY_SEGMENT_STARTED, null);
    }

    private void beginDeletion(Operation deletion) throws IOException {
        running.add(deletion);
        write(update(deletion, RemoteLogSegmentState.DELETE_SEGMENT_STARTED),
            RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.COPY_SEGMENT_FINISHED);
    }

    private void finish(Operation operation) throws IOException {
        boolean copied = operation.target == RemoteLogSegmentState.COPY_SEGMENT_FINISHED;
        write(update(operation, operation.target), operation.target,
            copied ? RemoteLogSegmentState.COPY_SEGMENT_STARTED : RemoteLogSegmentState.DELETE_SEGMENT_STARTED);
        long expired = operation.segment - liveSegmentsEach;
        if (copied && expired >= 0) {
            dueDeletions.add(
                new Operation(operation.partition, expired, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED));
        }
    }

    private RemoteLogMetadata update(Operation operation, RemoteLogSegmentState state) {
        return new RemoteLogSegmentMetadataUpdate(
            segmentId(operation), tick(), Optional.empty(), state, operation.partition.broker);
    }

    private RemoteLogSegmentId segmentId(Operation operation) {
        long stream = seed * 0x9E3779B97F4A7C15L + operation.partition.number * 0x1_0000_0000L + operation.segment;
        return new RemoteLogSegmentId(operation.partition.id, randomUuid(new SplittableRandom(stream)));
    }

    /** A random id as Kafka makes them: version 4, and none that is spelled with a dash in front. */
    private static Uuid randomUuid(SplittableRandom random) {
        Uuid id;
        do {
            id = new Uuid(random.nextLong() & ~0xF000L | 0x4000L, random.nextLong() & (-1L >>> 2) | (1L << 63));
        } while (id.toString().startsWith("-"));
        return id;
    }

    private long tick() {
        clock += random.nextInt(40);
        return clock;
    }

    private void write(RemoteLogMetadata event, RemoteLogSegmentState entered, RemoteLogSegmentState left)
            throws IOException {
        if (offset == events) {
            return;
        }
        buffer.clear();
        int sequence = (int) (offset & Integer.MAX_VALUE);
        try (MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
                TimestampType.CREATE_TIME, offset, RecordBatch.NO_TIMESTAMP, 0L, (short) 0, sequence, false, false, 0)) {
            builder.append(clock, null, serde.serialize(event));
            ByteBuffer batch = builder.build().buffer();
            log.write(batch.array(), batch.arrayOffset() + batch.position(), batch.remaining());
            bytes += batch.remaining();
        }
        offset++;
        finalStates.merge(entered, 1L, Long::sum);
        if (left != null) {
            finalStates.merge(left, -1L, Long::sum);
        }
    }

    /** A copy or a deletion that has begun; `target` is the state that ends it. */
    private record Operation(Partition partition, long segment, RemoteLogSegmentState target) {
        boolean copies(Partition other) {
            return partition == other && target == RemoteLogSegmentState.COPY_SEGMENT_FINISHED;
        }
    }

    private static final class Partition {
        private final int number;
        private final TopicIdPartition id;
        private final int broker;
        private long nextSegment;
        private long nextOffset;
        private int leaderEpoch;

        Partition(int number, long seed) {
            this.number = number;
            this.broker = 1 + number % BROKERS;
            int topic = number / TOPIC_PARTITIONS;
            this.id = new TopicIdPartition(randomUuid(new SplittableRandom(seed ^ (0x5DEECE66DL * (topic + 1)))),
                new TopicPartition("stream-" + topic, number % TOPIC_PARTITIONS));
        }

        RemoteLogMetadata started(RemoteLogSegmentId segmentId, long timestamp, Random random) {
            long start = nextOffset;
            long end = start + 1_000 + random.nextInt(50_000);
            nextOffset = end + 1;
            Map<Integer, Long> epochs = new TreeMap<>(Map.of(leaderEpoch, start));
            if (random.nextInt(50) == 0) {
                leaderEpoch++;
                epochs.put(leaderEpoch, start + 500);
            }
            return new RemoteLogSegmentMetadata(segmentId, start, end, timestamp - 60_000, broker, timestamp,
                (1 << 28) + random.nextInt(1 << 28), epochs, random.nextInt(20) != 0);
        }
    }
}
