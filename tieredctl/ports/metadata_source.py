"""Where metadata records come from, as operations see it, and the findings that every source reports alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.events import MetadataEvent
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition

METADATA_TOPIC = "__remote_log_metadata"
CUT_SHORT, EVENTS_LOST = FindingCode.METADATA_CUT_SHORT, FindingCode.METADATA_EVENTS_LOST
"""The codes of the findings that the end of a log is missing, and all events of some partitions."""
_NAMED = 5


class OffsetRange(NamedTuple):
    """The offsets that a metadata partition holds: from `start`, up to, not including, `end`."""

    start: int
    end: int


def truncated(metadata_partition: int, start: int, topic: str = METADATA_TOPIC) -> Finding:
    """The finding about a metadata partition whose log begins above offset 0."""
    message = f"the log begins at offset {start}: earlier events are lost, and what they reported is unknown"
    if topic == METADATA_TOPIC:
        message += "; this stays after `recover metadata`, which can register again only what is stored"
    return _of_log(FindingCode.METADATA_TRUNCATED, metadata_partition, topic, message, logStartOffset=start)


def cut_short(metadata_partition: int, end: int, least_end: int, whose: str, topic: str = METADATA_TOPIC) -> Finding:
    """The finding about a metadata partition whose log ends before an offset that it is known to have reached; `whose`
    files say so."""
    message = f"the log ends at offset {end}, but its {whose} have it up to {least_end}: events are lost"
    return _of_log(CUT_SHORT, metadata_partition, topic, message, logEndOffset=end, leastLogEndOffset=least_end)


def without_segments(metadata_partition: int, topic: str = METADATA_TOPIC) -> Finding:
    """The finding about a metadata partition that has folders, and no segment in any of them."""
    message = "its folder has no segment, and every log has one: events are lost"
    return _of_log(CUT_SHORT, metadata_partition, topic, message, logEndOffset=0)


def without_end(metadata_partition: int, topic: str = METADATA_TOPIC) -> Finding:
    """The finding about one in a node's folders that is empty, and that none of the node's checkpoints names: its whole
    beginning may be lost."""
    message = "the log is empty, and no checkpoint of the broker says that it was: events may be lost"
    return _of_log(FindingCode.METADATA_TRUNCATED, metadata_partition, topic, message, logEndOffset=0)


def _of_log(code: FindingCode, metadata_partition: int, topic: str, message: str, **offsets: int) -> Finding:
    evidence = {"metadataPartition": metadata_partition, **offsets}
    about = MetadataSubject(metadata_partition)
    return Finding(code, f"{topic}-{metadata_partition}", message, evidence, about=about)


def events_lost(partitions: Sequence[TopicIdPartition]) -> Finding:
    """The finding about partitions that have records in remote storage alone, of which no event is here."""
    named = [f"{one.topic}-{one.partition}" for one in partitions]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    who = "the local log of" if len(named) == 1 else "the local logs of"
    message = (
        f"{who} {', '.join(named[:_NAMED])}{more} begin{'s' if len(named) == 1 else ''} above the log start, with the "
        "rest in remote storage, and no event is of it: events are lost"
    )
    evidence = {"partitions": named}
    return Finding(EVENTS_LOST, METADATA_TOPIC, message, evidence)


class MetadataSource(Protocol):
    """Somewhere that holds `__remote_log_metadata`: a live topic, brokers' log directories, an export. Log directories
    give other metadata topics too.

    All sources give the same records for the same events, up to where each partition ended when the source was made
    or last advanced. Must be closed.
    """

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the metadata belongs to, if that is known here."""
        ...

    @property
    def metadata_topic_id(self) -> str | None:
        """The id of the topic itself, if that is known here: another id is another topic of the same name."""
        ...

    @property
    def partition_count(self) -> int | None:
        """How many partitions the topic has, including those that are not here; None if nothing here shows it."""
        ...

    def describe(self) -> dict[str, object]:
        """What this is and how far it was read, for the `source` of a JSON document."""
        ...

    def metadata_partitions(self) -> list[int]:
        """The metadata partitions that can be read here, ascending."""
        ...

    def findings(self) -> list[Finding]:
        """What was wrong before any record was read."""
        ...

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        """A partition's records from `from_offset` (inclusive) on, by ascending offset. Streams."""
        ...

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        """The offsets of a partition that were read; if it was not read yet, the end may be its start."""
        ...

    def advance(self) -> bool:
        """Looks again, over the same connections: from here on, all answers are as of now.

        Returns whether anything may have changed. Raises TieredctlError as making the source does, and then leaves
        the source as it was.
        """
        ...

    def close(self) -> None:
        """Closes connections and files."""
        ...


@runtime_checkable
class DivisibleSource(Protocol):
    """A source whose partitions can be read in stretches, each without what comes before it."""

    def divisions(self, metadata_partition: int, most_offsets: int) -> list[int]:
        """Offsets at which to divide a partition into stretches of about so many offsets, ascending; empty where it is
        not worth it, or is not possible."""
        ...

    def stretch(self, metadata_partition: int, offsets: OffsetRange) -> Iterator[RecordChunk]:
        """All records of a partition from one division, or its start, up to another, or its end. Between other offsets
        it may give more than was asked for. What is wrong with the log may be left out: `chunks` reports it."""
        ...


@runtime_checkable
class WitnessedSource(Protocol):
    """A source beside the logs of user partitions, which show what has to be in remote storage."""

    def tiered_besides(self, known: Collection[TopicIdPartition]) -> Sequence[TopicIdPartition]:
        """The partitions here that have records in remote storage alone, but for those that are known, by name."""
        ...


NO_BROKER = -1
"""The broker id of events that no broker wrote; it distinguishes tieredctl's own from those of brokers."""


class EventPublisher(Protocol):
    """Writes to the metadata topic."""

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        """Returns once all events are durably written, in this order. Raises TieredctlError where that is uncertain."""
        ...
