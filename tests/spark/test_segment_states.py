"""The replay on Spark has the states of the local engine, whatever the order of the events and of their rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA
from tieredctl_spark.metadata_pass import replayed
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_frame import SegmentFrame

from tests.event_histories import HistoryInMemory, Temper, random_history
from tests.replayed_states import event_row, states_of_rows, states_of_stream
from tieredctl.ops.metadata.event_stream import EventStream

pytestmark = pytest.mark.spark

BUCKETS = 4


def test_replayed_by_partitions_in_any_order_of_rows(spark: SparkSession) -> None:
    source = random.Random(7)  # of which two partitions claim the same ids
    history = random_history(source, Temper(50), 2_000)
    rows = list(map(event_row, history))
    source.shuffle(rows)
    events = spark.createDataFrame(pa.Table.from_pylist(rows, EVENT_SCHEMA), spark_schema(EVENT_SCHEMA))

    segments = SegmentFrame(replayed(events.repartition(3), BUCKETS)).rows().toArrow()

    assert states_of_rows(segments) == states_of_stream(EventStream(HistoryInMemory(history)))
    assert len(set(segments["segmentId"].to_pylist())) < len(segments)
    assert segments["removal"].null_count < len(segments)
