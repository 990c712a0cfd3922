import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Types;

/** Makes a table in LOCATION whose manifests name each line of FILE as a data file. No data file is there. */
public final class IcebergTable {
    private static final int FILES_OF_COMMIT = 500_000;

    public static void main(String[] arguments) throws IOException {
        PartitionSpec unpartitioned = PartitionSpec.unpartitioned();
        Schema schema = new Schema(Types.NestedField.required(1, "key", Types.StringType.get()));
        Table table = new HadoopTables(new Configuration()).create(schema, unpartitioned, arguments[0]);
        AppendFiles append = table.newFastAppend();
        try (BufferedReader lines = Files.newBufferedReader(Path.of(arguments[1]))) {
            int files = 0;
            for (String path = lines.readLine(); path != null; path = lines.readLine()) {
                append.appendFile(DataFiles.builder(unpartitioned).withPath(path).withFormat(FileFormat.PARQUET)
                    .withFileSizeInBytes(1_000).withRecordCount(1).build());
                if (++files % FILES_OF_COMMIT == 0) {
                    append.commit();
                    append = table.newFastAppend();
                }
            }
        }
        append.commit();
    }

    private IcebergTable() {}
}
