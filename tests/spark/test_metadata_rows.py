"""Records made narrow lose no event."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tieredctl_spark.metadata_shares import METADATA_SCHEMA
from tieredctl_spark.transforms.metadata_rows import ROW_SCHEMA, narrow_rows

from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState


def test_events_of_every_kind_and_state_are_numbered_as_kafka_does() -> None:
    kinds = {
        "RemoteLogSegmentMetadata": (SEGMENT_METADATA, RemoteLogSegmentState),
        "RemoteLogSegmentMetadataUpdate": (SEGMENT_METADATA_UPDATE, RemoteLogSegmentState),
        "RemotePartitionDeleteMetadata": (PARTITION_DELETE, RemotePartitionDeleteState),
    }
    given = [(kind, state.name) for kind, (_, states) in kinds.items() for state in states]
    others = [(None, None), ("RemoteLogSegmentMetadataSnapshot", "COPY_SEGMENT_FINISHED")]
    rows = [
        {"metadataPartition": 3, "metadataOffset": number, "timestampMs": 7, "type": kind, "state": state}
        for number, (kind, state) in enumerate([*given, *others])
    ]

    found = narrow_rows(pa.Table.from_pylist(rows, METADATA_SCHEMA))

    expected = [(api_key, int(state)) for api_key, states in kinds.values() for state in states]
    assert found.schema == ROW_SCHEMA
    assert found.column("metadataOffset").to_pylist() == [row["metadataOffset"] for row in rows]
    numbered = list(zip(found.column("apiKey").to_pylist(), found.column("state").to_pylist(), strict=True))
    assert numbered[: len(given)] == expected
    assert [api_key for api_key, _ in numbered[len(given) :]] == [None, None]


@pytest.mark.parametrize("row", [{"type": "New"}, {"type": "RemoteLogSegmentMetadataUpdate", "state": "NEW"}])
def test_an_event_of_an_unknown_kind_is_not_passed_over(row: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"unknown kind (NEW|New)"):
        narrow_rows(pa.Table.from_pylist([row], METADATA_SCHEMA))
