import org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager;

/** A remote log metadata manager of another name. */
public final class OtherMetadataManager extends TopicBasedRemoteLogMetadataManager {
}
