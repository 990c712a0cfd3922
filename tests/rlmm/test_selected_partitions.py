"""What is said of a selection that names nothing that is known."""

from __future__ import annotations

import pytest

from tests.metadata_logs import PARTITION, write_events
from tieredctl.errors import TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection, one_partition


def test_a_topic_made_again_without_events_is_named_by_its_id(tmp_path_factory: pytest.TempPathFactory) -> None:
    log_dir = tmp_path_factory.mktemp("data")
    write_events(log_dir)
    new = Selection(topics=(PARTITION.topic,), topic_ids=("AQIDBAUGBwgJCgsMDQ4PEA",))

    with pytest.raises(TieredctlError) as refusal:
        one_partition([PARTITION], new, EventStream(LogDirectories([log_dir])))

    named = "topic t, topic id AQIDBAUGBwgJCgsMDQ4PEA"
    assert refusal.value.message == f"The metadata has no event of {named}; of topic t it knows partition 0."
