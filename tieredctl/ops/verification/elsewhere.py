"""Objects whose events may be in metadata partitions that are not here: they are counted, not judged."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.coverage import MISSING, MetadataCoverage, numbers_text
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


@dataclass(slots=True)
class Elsewhere:
    """Partitions that are not judged; `objects` of them were listed."""

    metadata: ReplayedMetadata
    coverage: MetadataCoverage
    objects: int = 0

    def may_have(self, partition: TopicIdPartition) -> bool:
        """Whether a partition has no events here and may have events elsewhere."""
        known = partition in self.metadata.caches or partition in self.metadata.partition_deletes
        return not known and self.coverage.may_be_elsewhere(partition.topic_id, partition.partition)

    def findings(self) -> list[Finding]:
        """The finding for them, where no other finding reports missing metadata."""
        if not self.objects or self.coverage.is_broken:
            return []
        objects = counted(self.objects, "object belongs", "objects belong")
        message = (
            f"{objects} to partitions without events in the metadata partitions that are here "
            f"({numbers_text(self.coverage.here)}); their events may be in other metadata partitions"
        )
        evidence = {"metadataPartitions": list(self.coverage.here), "objects": self.objects}
        return [Finding(MISSING, METADATA_TOPIC, message, evidence)]
