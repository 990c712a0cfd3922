"""Buckets of partitions promise and lack what one replay of everything says, whatever the order of their records."""

from __future__ import annotations

import random
from functools import partial

import pyarrow as pa
import pytest
from tieredctl_spark.arrow.recorded_partitions import RECORD_SCHEMA, lineage_findings, promised_objects

from tests.event_histories import TEMPERS, HistoryInMemory, Temper, partition_of, random_histories
from tests.faults.cluster import LAYOUT
from tests.replayed_states import in_buckets
from tieredctl.formats.metadata_records import encode_event
from tieredctl.model.events import EventRecord, RemoteLogSegmentState
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.verification.lineage_check import EpochRanges, check_lineage
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def record_row(record: EventRecord) -> Document:
    partition = partition_of(record.event)
    return {
        "metadataPartition": record.metadata_partition,
        "metadataOffset": record.metadata_offset,
        "timestampMs": record.timestamp_ms,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "value": encode_event(record.event),
    }


def promised_by(metadata: ReplayedMetadata) -> list[tuple[str, str]]:
    return sorted(
        (known.metadata.segment_id, key)
        for partition, known in metadata.segments()
        if known.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        and partition not in metadata.partition_deletes
        for key in LAYOUT.promised_objects(known.metadata).values()
    )


def amiss_in(metadata: ReplayedMetadata) -> list[str]:
    found = []
    for partition in metadata.partitions:
        segments = [known.metadata for known in metadata.segments_of(partition)]
        segments = [one for one in segments if one.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]
        if segments and partition not in metadata.partition_deletes:
            ranges = EpochRanges.said_by(segments)
            deleted = partial(metadata.deleted_offsets, partition)
            found += check_lineage(partition, ranges, ranges.joined(), None, copied=lambda: None, deleted=deleted)
    return sorted(map(str, found))


def without_deletions(history: list[EventRecord]) -> list[EventRecord]:
    deletions = ("DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
    return [one for one in history if one.event.state.name not in deletions]


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_buckets_say_what_one_replay_does(temper: Temper) -> None:
    source, promises, findings = random.Random(f"recorded {temper}"), 0, 0
    histories = list(random_histories("recorded", temper, 2_000))
    # What deletions explain is no gap.
    for history in [*histories, *map(without_deletions, histories)]:
        count = source.choice([1, 2, 5])
        buckets = in_buckets(map(record_row, history), RECORD_SCHEMA, count, source, "topicId", "partition")

        promised = pa.concat_tables([promised_objects(bucket, LAYOUT) for bucket in buckets])
        amiss = [finding for bucket in buckets for finding in lineage_findings(bucket)]

        metadata = replayed(EventStream(HistoryInMemory(history)))
        told = zip(promised["segmentId"].to_pylist(), promised["key"].to_pylist(), strict=True)
        assert sorted(told) == promised_by(metadata)
        assert sorted(map(str, amiss)) == amiss_in(metadata)
        promises, findings = promises + len(promised), findings + len(amiss)
    assert promises
    assert findings
