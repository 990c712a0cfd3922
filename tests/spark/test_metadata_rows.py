"""Records made narrow lose no event."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.transforms.metadata_rows import RECORD_SCHEMA, events_in, metadata_rows

from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState

pytestmark = pytest.mark.spark


def test_events_of_every_kind_and_state_are_numbered_as_kafka_does(spark: SparkSession) -> None:
    kinds = {
        "RemoteLogSegmentMetadata": (SEGMENT_METADATA, RemoteLogSegmentState),
        "RemoteLogSegmentMetadataUpdate": (SEGMENT_METADATA_UPDATE, RemoteLogSegmentState),
        "RemotePartitionDeleteMetadata": (PARTITION_DELETE, RemotePartitionDeleteState),
    }
    given = [(kind, state.name) for kind, (_, states) in kinds.items() for state in states]
    others = [{"type": None}, {"type": "RemoteLogSegmentMetadataSnapshot", "state": "COPY_SEGMENT_FINISHED"}]
    rows = [{"metadataOffset": number, "type": kind, "state": state} for number, (kind, state) in enumerate(given)]
    records = spark.createDataFrame(pa.Table.from_pylist([*rows, *others], RECORD_SCHEMA), spark_schema(RECORD_SCHEMA))

    found = events_in(metadata_rows(records)).orderBy("metadataOffset").collect()

    expected = [(api_key, int(state)) for api_key, states in kinds.values() for state in states]
    assert [(row["apiKey"], row["state"]) for row in found] == expected


@pytest.mark.parametrize("row", [{"type": "New"}, {"type": "RemoteLogSegmentMetadataUpdate", "state": "NEW"}])
def test_an_event_of_an_unknown_kind_is_not_passed_over(spark: SparkSession, row: dict[str, str]) -> None:
    records = spark.createDataFrame(pa.Table.from_pylist([row], RECORD_SCHEMA), spark_schema(RECORD_SCHEMA))

    with pytest.raises(PySparkException, match=r"unknown kind (NEW|New)"):
        metadata_rows(records).collect()
