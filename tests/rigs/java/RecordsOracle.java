import java.io.File;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Records as Kafka's own classes read and write them.
 *
 * print OUT LOG...: every record of some logs, in their order, a line each.
 * generate SEED COUNT MAGICS LOG: a log of COUNT records or a few more, of batches of every kind.
 */
public class RecordsOracle {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("print")) {
            print(arguments);
        } else {
            generate(Long.parseLong(arguments[1]), Integer.parseInt(arguments[2]), arguments[3], Path.of(arguments[4]));
        }
    }

    private static void print(String[] arguments) throws Exception {
        long records = 0;
        try (PrintWriter out = new PrintWriter(arguments[1], StandardCharsets.US_ASCII)) {
            for (int at = 2; at < arguments.length; at++) {
                try (FileRecords log = FileRecords.open(new File(arguments[at]), false)) {
                    for (RecordBatch batch : log.batches()) {
                        for (Record record : batch) {
                            out.println(line(at - 2, batch, record));
                            records++;
                        }
                    }
                }
            }
        }
        System.out.println("records=" + records);
    }

    private static String line(int log, RecordBatch batch, Record record) {
        StringBuilder headers = new StringBuilder();
        for (Header header : record.headers()) {
            headers.append(hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))));
            headers.append('=').append(header.value() == null ? "-" : hex(ByteBuffer.wrap(header.value()))).append(';');
        }
        return String.join(" ", "" + log, "" + record.offset(), "" + record.timestamp(), batch.timestampType().name,
            hex(record.hasKey() ? record.key() : null), hex(record.hasValue() ? record.value() : null), "[" + headers + "]",
            "" + batch.partitionLeaderEpoch(), "" + batch.producerId(), "" + batch.producerEpoch(), "" + record.sequence(),
            "" + batch.isTransactional(), "" + batch.isControlBatch());
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) {
            return "-";
        }
        byte[] copied = new byte[bytes.remaining()];
        bytes.duplicate().get(copied);
        return "x" + HEX.formatHex(copied);
    }

    private static void generate(long seed, int count, String magics, Path file) throws Exception {
        Random random = new Random(seed);
        long offset = random.nextInt(1000);
        long timestamp = 1_700_000_000_000L;
        int written = 0;
        byte magic = (byte) (magics.charAt(0) - '0');
        try (FileChannel log = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            while (written < count) {
                magic = (byte) (magics.charAt(magics.length() * written / count) - '0');
                int records = size(random);
                boolean control = magic == 2 && random.nextInt(20) == 0;
                MemoryRecords batch = control
                    ? MemoryRecords.withEndTransactionMarker(offset, timestamp, 3, 5L, (short) 0,
                        new EndTransactionMarker(random.nextBoolean() ? ControlRecordType.ABORT : ControlRecordType.COMMIT, 1))
                    : magic == 2 && random.nextInt(40) == 0 ? empty(offset, records) : batch(random, magic, offset, timestamp, records);
                batch.writeFullyTo(log);
                records = control ? 1 : records;
                offset += records + (random.nextInt(10) == 0 ? random.nextInt(50) : 0);
                timestamp += random.nextInt(100);
                written += records;
            }
        }
        System.out.println("records=" + written);
    }

    private static int size(Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> 1;
            case 1 -> 1 + random.nextInt(5);
            case 2 -> 1 + random.nextInt(60);
            default -> 1 + random.nextInt(random.nextInt(20) == 0 ? 2000 : 300);
        };
    }

    /** What compaction leaves of a batch all of whose records it removed. */
    private static MemoryRecords empty(long offset, int records) {
        ByteBuffer buffer = ByteBuffer.allocate(200);
        DefaultRecordBatch.writeEmptyHeader(buffer, (byte) 2, 9L, (short) 1, 0, offset,
            offset + records - 1, 3, TimestampType.CREATE_TIME, 1_700_000_000_000L, false, false);
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private static MemoryRecords batch(Random random, byte magic, long offset, long timestamp, int records) {
        Compression[] codecs = {Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
            Compression.lz4().build(), Compression.zstd().build()};
        Compression codec = codecs[random.nextInt(magic == 2 ? 5 : 4)];
        boolean idempotent = magic == 2 && random.nextInt(3) == 0;
        TimestampType type = magic > 0 && random.nextInt(4) == 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        if (magic == 0) {
            type = TimestampType.NO_TIMESTAMP_TYPE;
        }
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 16), magic, codec, type, offset,
            type == TimestampType.LOG_APPEND_TIME ? timestamp + 77 : RecordBatch.NO_TIMESTAMP, idempotent ? random.nextInt(1 << 20) : -1L,
            (short) (idempotent ? random.nextInt(100) : -1), idempotent ? Integer.MAX_VALUE - random.nextInt(500) : -1,
            idempotent && random.nextBoolean(), false, magic == 2 ? 3 : -1, 1 << 26);
        for (int number = 0; number < records; number++) {
            boolean removed = magic == 2 && number + 1 < records && random.nextInt(9) == 0;  // as by compaction
            if (removed) {
                continue;
            }
            long at = magic == 0 ? RecordBatch.NO_TIMESTAMP : timestamp + random.nextInt(2000) - 1000;
            Header[] headers = magic == 2 ? headers(random) : new Header[0];
            builder.appendWithOffset(offset + number, at, bytes(random, 40), bytes(random, random.nextInt(50) == 0 ? 9000 : 90), headers);
        }
        return builder.build();
    }

    private static byte[] bytes(Random random, int longest) {
        int kind = random.nextInt(6);
        if (kind == 0) {
            return null;
        }
        byte[] made = new byte[kind == 1 ? 0 : random.nextInt(longest)];
        random.nextBytes(made);
        return made;
    }

    private static Header[] headers(Random random) {
        int count = switch (random.nextInt(8)) {
            case 0 -> 1;
            case 1 -> 2 + random.nextInt(4);
            case 2 -> random.nextInt(60) == 0 ? 200 : 1;
            default -> 0;
        };
        Header[] made = new Header[count];
        for (int number = 0; number < count; number++) {
            String key = random.nextInt(3) == 0 ? "" : "k\u00fc" + random.nextInt(3);
            made[number] = new RecordHeader(key, bytes(random, random.nextInt(200) == 0 ? 70_000 : 12));
        }
        return made;
    }
}
