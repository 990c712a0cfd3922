"""`explain` on a cluster that moves: what retention takes while it looks is not called lost."""

from __future__ import annotations

from pathlib import Path

from tests.metadata_logs import DELETED, DELETING, copied, updated, write_events
from tests.tiering.model_cluster import ModelCluster
from tieredctl.ops.explanation.explain_live import TopicPlace, explain_live
from tieredctl.ops.explanation.explanation import Explanation, Place
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.wiring.explain import explained
from tieredctl.wiring.places import MetadataPlace


def test_an_offset_whose_segment_goes_while_it_is_looked_for_is_below_the_log_start(tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED))
    for name, log_starts, places in (
        ("retention ran", [0, 50], [Place.LOST, Place.BELOW_LOG_START]),
        ("it is lost", [0, 0], [Place.LOST, Place.LOST]),
        ("it was below from the beginning", [50], [Place.BELOW_LOG_START]),
    ):
        left, seen = [*log_starts], list[Place]()

        def look(stream: EventStream, left: list[int] = left, seen: list[Place] = seen) -> Explanation | None:
            """The leader says where its log starts, and the metadata is read after that."""
            segments = {} if left.pop(0) else {1: (0, 9)}
            found = explain_live(
                ModelCluster(remote_segments=segments, earliest_local=50), stream, TopicPlace("t", 0, 5)
            )
            assert found is not None
            seen.append(found.place)
            return found

        with explained(MetadataPlace((tmp_path,)), None, look) as last:
            assert last.found is not None
            assert (seen, last.found.place) == (places, places[-1]), name
