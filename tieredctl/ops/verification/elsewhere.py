"""What may have its events in metadata partitions that are not here: nothing is said of it but that."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.coverage import MISSING, MetadataCoverage, numbers_text
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


@dataclass(slots=True)
class Elsewhere:
    """Partitions that are not judged; `objects` of them were listed."""

    metadata: ReplayedMetadata
    coverage: MetadataCoverage
    objects: int = 0

    def may_have(self, partition: TopicIdPartition) -> bool:
        """Whether a partition has no events here and may have some elsewhere."""
        known = partition in self.metadata.caches or partition in self.metadata.partition_deletes
        return not known and self.coverage.may_be_elsewhere(partition.topic_id, partition.partition)

    def findings(self) -> list[Finding]:
        """What is said of them where nothing else says that metadata is missing."""
        if not self.objects or self.coverage.is_broken:
            return []
        message = (
            f"{self.objects} objects are of partitions without events in the metadata partitions that are here "
            f"({numbers_text(self.coverage.here)}); there may be others, where they have some"
        )
        evidence = {"metadataPartitions": list(self.coverage.here), "objects": self.objects}
        return [Finding(MISSING, METADATA_TOPIC, message, evidence)]
