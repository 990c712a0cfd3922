package org.apache.kafka.server.log.remote.metadata.storage;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Reads a log of the metadata topic with Kafka's own classes, as brokers load the logs of their own topics: some
 * megabytes at a time, CRCs checked. It is in Kafka's package because the store lists its segments to nobody else.
 *
 * <p>Arguments: LOG_FILE read|decode|replay|print [LIST]. `read` stops at the records, `decode` at the events, `replay`
 * puts each of them into a RemotePartitionMetadataStore, `print` prints besides each segment that the store then lists.
 * LIST, after `replay`, is written: the objects that Aiven's plugin keeps for each segment in COPY_SEGMENT_FINISHED, a
 * key a line, in the order of their bytes.
 * Prints one last line of NAME=VALUE words: `events`; after `replay` `segments`; with LIST where the newest segment of the last
 * partition ends: `partition` (TOPIC:PARTITION), `epoch` and `offset`.
 */
public final class MetadataReplay {
    private static final int BYTES_AT_ONCE = 5 << 20;
    private static final String[] SUFFIXES = {".indexes", ".log", ".rsm-manifest"};

    private final RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
    private final RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();
    private final Set<TopicIdPartition> partitions =
        new TreeSet<>(Comparator.comparing(MetadataReplay::folder));
    private final boolean decodes;
    private final boolean replays;
    private final boolean prints;
    private long events;

    private MetadataReplay(String depth) {
        this.decodes = !depth.equals("read");
        this.prints = depth.equals("print");
        this.replays = prints || depth.equals("replay");
    }

    public static void main(String[] arguments) throws Exception {
        MetadataReplay replay = new MetadataReplay(arguments[1]);
        replay.read(new File(arguments[0]));
        String summary = "events=" + replay.events;
        if (replay.replays) {
            summary += " segments=" + replay.segments();
        }
        if (arguments.length > 2) {
            summary += " " + replay.writeList(Path.of(arguments[2]));
        }
        System.out.println(summary);
    }

    private void read(File log) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(BYTES_AT_ONCE);
        try (FileRecords file = FileRecords.open(log, false)) {
            int position = 0;
            while (position < file.sizeInBytes()) {
                buffer.clear();
                file.readInto(buffer, position);
                MemoryRecords records = MemoryRecords.readableRecords(buffer);
                if (records.validBytes() == 0) {
                    throw new IllegalStateException("no whole batch at " + position);
                }
                for (MutableRecordBatch batch : records.batches()) {
                    batch.ensureValid();
                    for (Record record : batch) {
                        take(record);
                    }
                }
                position += records.validBytes();
            }
        }
    }

    private void take(Record record) {
        events++;
        if (decodes) {
            byte[] value = new byte[record.valueSize()];
            record.value().get(value);
            RemoteLogMetadata event = serde.deserialize(value);
            if (replays) {
                TopicIdPartition partition = event.topicIdPartition();
                if (!store.isInitialized(partition)) {
                    store.maybeLoadPartition(partition);
                    store.markInitialized(partition);
                    partitions.add(partition);
                }
                store.handleRemoteLogMetadata(event);
            }
        }
    }

    private long segments() throws RemoteStorageException {
        PrintWriter out = new PrintWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        long found = 0;
        for (TopicIdPartition partition : partitions) {
            for (var known = store.listRemoteLogSegments(partition); known.hasNext(); found++) {
                RemoteLogSegmentMetadata segment = known.next();
                if (prints) {
                    out.println(segment);
                }
            }
        }
        out.flush();
        return found;
    }

    private String writeList(Path list) throws IOException, RemoteStorageException {
        RemoteLogSegmentMetadata last = null;
        try (BufferedWriter out = Files.newBufferedWriter(list, StandardCharsets.US_ASCII)) {
            for (TopicIdPartition partition : partitions) {
                for (RemoteLogSegmentMetadata segment : finishedSegments(partition)) {
                    String stem = folder(partition) + String.format("%020d-", segment.startOffset())
                        + segment.remoteLogSegmentId().id();
                    for (String suffix : SUFFIXES) {
                        out.write(stem + suffix + "\n");
                    }
                    last = segment;
                }
            }
        }
        if (last == null) {
            throw new IllegalStateException("no segment was copied");
        }
        TopicIdPartition partition = last.topicIdPartition();
        return "partition=" + partition.topic() + ":" + partition.partition()
            + " epoch=" + last.segmentLeaderEpochs().lastKey() + " offset=" + last.endOffset();
    }

    private List<RemoteLogSegmentMetadata> finishedSegments(TopicIdPartition partition) throws RemoteStorageException {
        List<RemoteLogSegmentMetadata> finished = new ArrayList<>();
        store.listRemoteLogSegments(partition).forEachRemaining(segment -> {
            if (segment.state() == RemoteLogSegmentState.COPY_SEGMENT_FINISHED) {
                finished.add(segment);
            }
        });
        finished.sort(Comparator.comparingLong(RemoteLogSegmentMetadata::startOffset));
        return finished;
    }

    private static String folder(TopicIdPartition partition) {
        return partition.topic() + "-" + partition.topicId() + "/" + partition.partition() + "/";
    }
}
