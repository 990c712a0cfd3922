import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.server.log.remote.storage.LocalTieredStorage;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Kafka's LocalTieredStorage, which is final, but for the topics of `undeletable.topics` (names with commas between
 * them): of these it deletes nothing, and says so. With LocalTieredStorage's own `delete.enable=false` it deletes
 * nothing of the others either, and says that it did. While there is a file `held.by`, deletions wait.
 */
public final class StubbornStorage implements RemoteStorageManager {
    private final LocalTieredStorage storage = new LocalTieredStorage();
    private Set<String> undeletableTopics = Set.of();
    private Path heldBy;

    @Override
    public void configure(Map<String, ?> settings) {
        undeletableTopics = Arrays.stream(settings.get("undeletable.topics").toString().split(","))
                .collect(Collectors.toUnmodifiableSet());
        heldBy = settings.containsKey("held.by") ? Path.of(settings.get("held.by").toString()) : null;
        storage.configure(settings);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        return storage.copyLogSegmentData(segment, data);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return storage.fetchLogSegment(segment, start);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        return storage.fetchLogSegment(segment, start, end);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType kind) throws RemoteStorageException {
        return storage.fetchIndex(segment, kind);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        String topic = segment.topicIdPartition().topic();
        if (undeletableTopics.contains(topic)) {
            throw new RemoteStorageException("the rig does not delete segments of " + topic);
        }
        while (heldBy != null && Files.exists(heldBy)) {
            try {
                Thread.sleep(50);
            } catch (InterruptedException interruption) {
                throw new RemoteStorageException(interruption);
            }
        }
        storage.deleteLogSegmentData(segment);
    }

    @Override
    public void close() {
        storage.close();
    }
}
