"""What the sources have now, and whether that is news: asked without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.metadata.stretches import end_offsets
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_shares import demand_same_topic
from tieredctl_spark.tables.manifest import Looked
from tieredctl_spark.tables.table_store import demand_same_store


@dataclass(frozen=True, slots=True)
class MetadataLook:
    """What the metadata logs hold."""

    cluster_id: str | None
    topic_id: str | None
    offsets: Mapping[int, tuple[int, int]]
    """The first offset of each metadata partition, and the one after the last."""

    def document(self) -> dict[str, tuple[int, int]]:
        """The offsets as a manifest has them."""
        return {str(number): found for number, found in sorted(self.offsets.items())}

    def after(self, recorded: Looked | None) -> MetadataLook:
        """What is known with what was recorded before: of a metadata partition that is not here now, how far it was
        read, as of an empty log; and an id that the sources do not tell now."""
        if recorded is None:
            return self
        offsets = {int(number): (end, end) for number, (_, end) in recorded.offsets.items()} | dict(self.offsets)
        return MetadataLook(
            self.cluster_id or recorded.cluster_id, self.topic_id or recorded.metadata_topic_id, offsets
        )


def look_at(metadata: MetadataPlace) -> MetadataLook:
    """Reads no more than where logs begin and end. Raises TieredctlError as the place does."""
    with closing(metadata.open_source()) as source:
        ends = end_offsets(source)
        found = {number: (source.offset_range(number).start, end) for number, end in ends.items()}
        return MetadataLook(source.cluster_id, source.metadata_topic_id, found)


def demand_same_sources(recorded: Looked, seen: MetadataLook, store_url: str, tables: str) -> None:
    """Raises TieredctlError where tables are of another cluster, another life of its metadata topic or another store,
    and `unreadable` where a log ends before the offset that it was read up to: others may take its offsets."""
    if None not in (recorded.cluster_id, seen.cluster_id) and recorded.cluster_id != seen.cluster_id:
        message = f"The tables in {tables} are of cluster {recorded.cluster_id}, and this is {seen.cluster_id}."
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Name another folder: one for each cluster.")
    demand_same_topic(seen.topic_id, recorded.metadata_topic_id)
    demand_same_store(recorded.store, store_url, tables)
    for number, (_, end) in recorded.offsets.items():
        now = seen.offsets.get(int(number))
        if now is not None and now[1] < end:
            message = f"Metadata partition {number} ends at offset {now[1]}, but was read up to {end}: it lost its end."
            hint = "Let the run read the log that it read before, or begin in another folder."
            raise TieredctlError(ErrorCode.UNREADABLE, message, hint=hint)


def first_unread(recorded: Looked | None, seen: MetadataLook) -> dict[int, int]:
    """The offset of each metadata partition from which on its events are new."""
    known = {} if recorded is None else {int(number): end for number, (_, end) in recorded.offsets.items()}
    return {number: max(start, known.get(number, start)) for number, (start, _) in seen.offsets.items()}
