import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.ProducerIdsRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;

/**
 * Writes the snapshot of a large cluster as controllers do, with Kafka's own writer: a hundred brokers with two log
 * directories each, and topics of 1 to 23 partitions with three replicas and none to four settings.
 *
 * <p>Arguments: FOLDER RECORDS SEED. Writes the one snapshot in FOLDER, with RECORDS records besides the control records, a
 * tenth of a percent of them at most beyond it. Prints NAME=NUMBER words: `records`, `topics`, `partitions`, `configs`.
 */
public final class MetadataSnapshotGenerator {
    private static final int BROKERS = 100;
    private static final int AT_ONCE = 1000;
    private static final int BATCH_BYTES = 8 << 20;
    private static final long NOW = 1_700_000_000_000L;
    private static final String[][] CONFIGS = {
        {"retention.ms", "604800000"},
        {"min.insync.replicas", "2"},
        {"remote.storage.enable", "true"},
        {"local.retention.ms", "86400000"},
        {"leader.replication.throttled.replicas", "0:1,0:2,0:3,1:2,1:3,1:4,2:3,2:4,2:5,3:4,3:5,3:6,4:5,4:6,4:7"},
    };

    private final Random random;
    private final RecordsSnapshotWriter<ApiMessageAndVersion> writer;
    private final List<ApiMessageAndVersion> pending = new ArrayList<>();
    private final List<List<Uuid>> directories = new ArrayList<>();
    private int records = 0;
    private int partitions = 0;
    private int configs = 0;

    private MetadataSnapshotGenerator(RecordsSnapshotWriter<ApiMessageAndVersion> writer, Random random) {
        this.writer = writer;
        this.random = random;
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        int wanted = Integer.parseInt(arguments[1]);
        Files.createDirectories(folder);
        VoterSet voters = VoterSet.fromInetSocketAddresses(
            new ListenerName("CONTROLLER"), Map.of(3000, InetSocketAddress.createUnresolved("controller-0", 9093)));
        RecordsSnapshotWriter<ApiMessageAndVersion> writer = new RecordsSnapshotWriter.Builder()
            .setLastContainedLogTimestamp(NOW)
            .setKraftVersion(KRaftVersion.KRAFT_VERSION_1)
            .setVoterSet(Optional.of(voters))
            .setMaxBatchSizeBytes(BATCH_BYTES)
            .setRawSnapshotWriter(FileRawSnapshotWriter.create(folder, new OffsetAndEpoch(10L * wanted, 7)))
            .build(new MetadataRecordSerde());
        try (writer) {
            MetadataSnapshotGenerator generator =
                new MetadataSnapshotGenerator(writer, new Random(Long.parseLong(arguments[2])));
            int topics = generator.write(wanted);
            writer.freeze();
            System.out.println("records=" + generator.records + " topics=" + topics
                + " partitions=" + generator.partitions + " configs=" + generator.configs);
        }
    }

    private int write(int wanted) {
        add(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) 30), 0);
        for (int broker = 0; broker < BROKERS; broker++) {
            broker(broker);
        }
        add(new ProducerIdsRecord().setBrokerId(1).setBrokerEpoch(88).setNextProducerId(1_000_000), 0);
        int topics = 0;
        while (records < wanted) {
            topic("team-" + random.nextInt(300) + ".events." + topics++);
        }
        writer.append(pending);
        return topics;
    }

    private void broker(int id) {
        directories.add(List.of(uuid(), uuid()));
        RegisterBrokerRecord record = new RegisterBrokerRecord()
            .setBrokerId(id).setIncarnationId(uuid()).setBrokerEpoch(1000 + id).setRack("rack-" + id % 3)
            .setFenced(false).setLogDirs(directories.get(id));
        record.endPoints().add(new RegisterBrokerRecord.BrokerEndpoint()
            .setName("PLAINTEXT").setHost("broker-" + id + ".kafka.example").setPort(9092).setSecurityProtocol((short) 0));
        record.features().add(new RegisterBrokerRecord.BrokerFeature()
            .setName("metadata.version").setMinSupportedVersion((short) 7).setMaxSupportedVersion((short) 30));
        add(record, 3);
        if (id % 10 == 0) {
            add(new ClientQuotaRecord().setKey("producer_byte_rate").setValue(1e6 * id + 0.5).setEntity(List.of(
                new ClientQuotaRecord.EntityData().setEntityType("user").setEntityName("team-" + id))), 0);
        }
    }

    private void topic(String name) {
        Uuid id = uuid();
        add(new TopicRecord().setName(name).setTopicId(id), 0);
        int count = 1 + random.nextInt(23);
        for (int partition = 0; partition < count; partition++) {
            partition(id, partition);
        }
        for (int config = random.nextInt(CONFIGS.length); config > 0; config--) {
            String[] pair = CONFIGS[config];
            add(new ConfigRecord().setResourceType((byte) 2).setResourceName(name).setName(pair[0]).setValue(pair[1]), 0);
            configs++;
        }
    }

    private void partition(Uuid topic, int partition) {
        int first = random.nextInt(BROKERS);
        List<Integer> replicas = List.of(first, (first + 1 + random.nextInt(33)) % BROKERS, (first + 40 + random.nextInt(33)) % BROKERS);
        boolean isDegraded = random.nextInt(50) == 0;
        PartitionRecord record = new PartitionRecord()
            .setPartitionId(partition).setTopicId(topic).setReplicas(replicas)
            .setIsr(isDegraded ? replicas.subList(0, 2) : replicas)
            .setLeader(first).setLeaderEpoch(random.nextInt(40)).setPartitionEpoch(random.nextInt(200))
            .setDirectories(replicas.stream().map(id -> directories.get(id).get(random.nextInt(2))).toList());
        if (isDegraded) {
            record.setEligibleLeaderReplicas(replicas.subList(2, 3));
        }
        add(record, 2);
        partitions++;
    }

    private Uuid uuid() {
        return new Uuid(random.nextLong(), random.nextLong());
    }

    private void add(ApiMessage message, int version) {
        pending.add(new ApiMessageAndVersion(message, (short) version));
        records++;
        if (pending.size() == AT_ONCE) {
            writer.append(new ArrayList<>(pending));
            pending.clear();
        }
    }
}
