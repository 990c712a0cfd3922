"""When a diagnosis is made again: where the metadata went away, of which it found something, and where it failed."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT
from tests.metadata_logs import DELETED, DELETING, copied, started, updated, write_events
from tests.tiering.model_cluster import NOW_MS, ModelCluster
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.ops.verification.removed_keys import note_removed
from tieredctl.storage.memory import MemoryStore
from tieredctl.wiring import exporter
from tieredctl.wiring.exporter import DIAGNOSIS, METADATA, Exporter
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, Remote, StorePlace
from tieredctl.wiring.status import StatusPlaces, status_of

HOUR_MS = 3_600_000
FAILING = ("copy-failing", "warning")
STUCK = ("copy-stuck", "warning")
BELOW = ("segments-below-log-start", "warning")
REMOVED = ("object-removed", "warning")
NOT_MADE = ("check-not-made", "warning")


class Cluster(ModelCluster):
    """Without consumer groups."""

    def committed_offsets(self) -> list[object]:
        return []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A copy to its remote storage never ended."""
    made = Cluster(own={"remote.storage.enable": "true"}, events=[started(1, 0, 9)])
    monkeypatch.setattr(ClusterPlace, "open", lambda _: nullcontext(made))
    monkeypatch.setattr(ClusterPlace, "open_with_groups", lambda _: nullcontext(made))
    monkeypatch.setattr(MetadataPlace, "open_source", lambda _: made.source())
    monkeypatch.setattr(MetadataPlace, "demand_topic_based", lambda _: None)
    monkeypatch.setattr(exporter, "_DIAGNOSIS_TIMES", 1 << 40)
    return made


def exporter_of_model() -> Exporter:
    place = MetadataPlace(cluster=ClusterPlace("model:9092"))
    return Exporter(StatusPlaces(metadata=place), older_than_ms=1, most_topics=10, now_ms=lambda: NOW_MS)


def test_it_says_what_is_not_known_until_the_metadata_is_read_again(cluster: Cluster) -> None:
    running = exporter_of_model()
    seen = []

    for denied in ((), ("source",), ()):
        cluster.denied = denied
        running.refresh()
        seen.append(running.latest)

    before, meanwhile, after = (one.findings or Counter() for one in seen)
    assert [one.parts[METADATA].is_up for one in seen] == [True, False, True]
    assert all(one.parts[DIAGNOSIS].is_up for one in seen)
    assert (before[STUCK], before[NOT_MADE]) == (1, 0)
    assert (meanwhile[STUCK], meanwhile[NOT_MADE]) == (0, 1)
    assert after == before


def test_what_tieredctl_removed_from_the_store_is_not_stuck(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    store, keys = MemoryStore(), list(LAYOUT.promised_objects(started(1, 0, 9)).values())
    monkeypatch.setattr(StorePlace, "open", lambda _: Remote(store, LAYOUT))
    monkeypatch.setattr(StorePlace, "open_store", lambda _: store)
    place = MetadataPlace(cluster=ClusterPlace("model:9092"))
    seen = []

    for is_removed in (False, True):
        if is_removed:
            note_removed(store, None, "plan-7", keys)
        running = Exporter(StatusPlaces(place, StorePlace("memory:", {})), 1, 10, now_ms=lambda: NOW_MS)
        running.refresh()
        seen.append(running.latest)

    before, after = (one.findings or Counter() for one in seen)
    assert [one.topics[0].stuck_copies for one in seen] == [1, 0]
    assert (before[STUCK], before[REMOVED]) == (1, 0)
    assert (after[STUCK], after[REMOVED]) == (0, 1)


def test_one_that_failed_is_made_again_at_the_next_look(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    running = exporter_of_model()
    with monkeypatch.context() as broken:
        broken.setattr(exporter, "_diagnosis", raises_unanswered)
        running.refresh()
    assert not running.latest.parts[DIAGNOSIS].is_up

    running.refresh()

    assert running.latest.parts[DIAGNOSIS].is_up
    assert (running.latest.findings or Counter())[STUCK] == 1


def test_what_may_be_movement_counts_once_two_in_a_row_found_it(cluster: Cluster) -> None:
    """The second is made at the next look; later ones in their time."""
    deleted = (updated(1, DELETING), updated(1, DELETED))
    for name, meanwhile, counts in (("it stays", (), [0, 1, 1]), ("it was deleted", deleted, [0, 0, 0])):
        cluster.events, cluster.earliest_local = [*copied(1, 0, 9)], 100
        running = exporter_of_model()
        seen = []

        for _ in counts:
            running.refresh()
            seen.append((running.latest.findings or Counter())[BELOW])
            cluster.events += meanwhile[len(cluster.events) - 2 :]  # once

        assert seen == counts, name


def raises_unanswered(*_: object) -> None:
    raise TieredctlError(ErrorCode.UNREADABLE, "No answer.")


def test_of_metadata_without_a_cluster_what_fails_again_and_again_counts_as_in_status(tmp_path: Path) -> None:
    tries = [
        event
        for number in (1, 2, 3)
        for event in (
            started(number, 0, 9, event_timestamp_ms=NOW_MS - 1_000),
            updated(number, DELETING, event_timestamp_ms=NOW_MS),
            updated(number, DELETED, event_timestamp_ms=NOW_MS),
        )
    ]
    write_events(tmp_path, *tries)
    places = StatusPlaces(metadata=MetadataPlace((tmp_path,)))
    running = Exporter(places, older_than_ms=HOUR_MS, most_topics=10, now_ms=lambda: NOW_MS)

    running.refresh()
    running.close()

    found = status_of(places, Clock(NOW_MS, HOUR_MS)).cluster
    assert found is not None
    assert running.latest.findings == Counter((one.code.value, one.severity.label) for one in found.findings or ())
    assert (running.latest.findings or Counter())[FAILING] == 1
