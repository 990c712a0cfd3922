import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.DefaultRecord;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerAppendInfo;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;

/**
 * Writes one big, sound log segment through Kafka's own LogSegment, so that log, offset index and time index are what
 * a broker writes, with the producer snapshot of its end and the leader epochs beside it.
 *
 * <p>Arguments: FOLDER BASE_OFFSET TOTAL_BYTES BATCH_BYTES COMPRESSION LEADER_EPOCHS SEED. The log ends with the first
 * batch that reaches TOTAL_BYTES; a batch has BATCH_BYTES, or the most below that records allow, before compression.
 * LEADER_EPOCHS epochs share the log evenly, numbered from 0. FOLDER must exist and be empty. Prints one line of
 * NAME=NUMBER words: `batches`, `records`, `bytes`, `next_offset`.
 */
public final class SegmentGenerator {
    private static final TopicPartition TOPIC_PARTITION = new TopicPartition("generated", 0);
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    private static final int PRODUCERS = 5;
    private static final int LARGEST_VALUE = 1_000;
    private static final int SMALLEST_RECORD = 40;
    private static final int POOL_BYTES = 1 << 20;

    private final File folder;
    private final long baseOffset;
    private final int totalBytes;
    private final int batchBytes;
    private final Compression compression;
    private final int leaderEpochs;
    private final Random random;
    private final byte[] pool;
    private final int[] sequences = new int[PRODUCERS];
    private final List<EpochEntry> epochs = new ArrayList<>();
    private long nextOffset;
    private long clock = FIRST_TIMESTAMP;
    private long batches;

    private SegmentGenerator(String[] arguments) {
        this.folder = new File(arguments[0]);
        this.baseOffset = Long.parseLong(arguments[1]);
        this.totalBytes = Integer.parseInt(arguments[2]);
        this.batchBytes = Integer.parseInt(arguments[3]);
        this.compression = Compression.of(arguments[4]).build();
        this.leaderEpochs = Integer.parseInt(arguments[5]);
        this.random = new Random(Long.parseLong(arguments[6]));
        this.pool = words(random);
        this.nextOffset = baseOffset;
    }

    public static void main(String[] arguments) throws IOException {
        new SegmentGenerator(arguments).generate();
    }

    private void generate() throws IOException {
        LogConfig config = new LogConfig(Map.of("index.interval.bytes", "4096", "segment.bytes", "2147483647"));
        ProducerStateManager producers = new ProducerStateManager(
            TOPIC_PARTITION, folder, 900_000, new ProducerStateManagerConfig(86_400_000, false), Time.SYSTEM);
        LogSegment segment = LogSegment.open(folder, baseOffset, config, Time.SYSTEM, 0, false);
        ByteBuffer buffer = ByteBuffer.allocate(batchBytes * 2 + 1024);
        while (segment.size() < totalBytes) {
            MemoryRecords records = batch(buffer, epoch(segment.size()));
            for (MutableRecordBatch batch : records.batches()) {
                ProducerAppendInfo append = producers.prepareUpdate(batch.producerId(), AppendOrigin.CLIENT);
                append.append(batch, Optional.empty());
                producers.update(append);
            }
            segment.append(nextOffset - 1, records);
            batches++;
        }
        segment.onBecomeInactiveSegment();
        segment.flush();
        producers.updateMapEndOffset(nextOffset);
        producers.takeSnapshot();
        new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(folder), new LogDirFailureChannel(1))
            .write(epochs);
        System.out.println("batches=" + batches + " records=" + (nextOffset - baseOffset)
            + " bytes=" + segment.size() + " next_offset=" + nextOffset);
        segment.close();
    }

    private int epoch(int writtenBytes) {
        int epoch = (int) ((long) writtenBytes * leaderEpochs / totalBytes);
        if (epochs.isEmpty() || epochs.get(epochs.size() - 1).epoch() < epoch) {
            epochs.add(new EpochEntry(epoch, nextOffset));
        }
        return epoch;
    }

    private MemoryRecords batch(ByteBuffer buffer, int epoch) {
        buffer.clear();
        int producer = random.nextInt(PRODUCERS);
        // the clock of a producer may be behind that of the one before
        clock += random.nextInt(20);
        long timestamp = clock - random.nextInt(200);
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, compression,
            TimestampType.CREATE_TIME, nextOffset, RecordBatch.NO_TIMESTAMP, 1_000L + producer, (short) 0,
            sequences[producer], false, false, epoch);
        int count = 0;
        int room = batchBytes - DefaultRecordBatch.RECORD_BATCH_OVERHEAD;
        while (count == 0 || room >= SMALLEST_RECORD) {
            byte[] key = ("key-" + random.nextInt(1_000_000)).getBytes();
            int valueBytes = Math.max(1, Math.min(Math.min(LARGEST_VALUE, batchBytes / 4), room));
            while (valueBytes > 1 && recordBytes(count, key, valueBytes) > room) {
                valueBytes--;
            }
            byte[] value = new byte[valueBytes];
            System.arraycopy(pool, random.nextInt(POOL_BYTES - valueBytes), value, 0, valueBytes);
            builder.append(timestamp + count, key, value);
            room -= recordBytes(count, key, valueBytes);
            count++;
        }
        nextOffset += count;
        sequences[producer] = DefaultRecordBatch.incrementSequence(sequences[producer], count);
        return builder.build();
    }

    private static int recordBytes(int count, byte[] key, int valueBytes) {
        return DefaultRecord.sizeInBytes(count, count, key.length, valueBytes, Record.EMPTY_HEADERS);
    }

    /** Text that compresses as text does. */
    private static byte[] words(Random random) {
        StringBuilder text = new StringBuilder();
        while (text.length() < POOL_BYTES) {
            text.append(Integer.toString(random.nextInt(5_000), 36)).append(' ');
        }
        return text.substring(0, POOL_BYTES).getBytes();
    }
}
