"""A backup that is interrupted ends at once until its set is there, and leaves none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backup.captured_sets import CapturedCluster, CapturedSets
from tests.snapshots.test_fetch_resumed import TOPIC_ID, Leader, snapshot_of
from tieredctl.ops.backup.cluster_state import fetch_cluster_state
from tieredctl.process import interruption


class LeaderOfASnapshot(Leader):
    """One whose log has nothing more."""

    def log_after(self, _snapshot: object) -> Iterator[bytes]:
        return iter(())


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    interruption.forget()


def test_once_the_clusters_metadata_is_read_no_file_is_left_and_an_interruption_ends_the_run(tmp_path: Path) -> None:
    with interruption.command():
        fetch_cluster_state(LeaderOfASnapshot(snapshot_of(1000, TOPIC_ID)), tmp_path)
        ends_at_once = interruption.request()

    assert (ends_at_once, [*tmp_path.iterdir()]) == (True, [])


def test_once_the_events_are_read_an_interruption_still_ends_the_run(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = CapturedSets.of(captures, tmp_path)
    before, ended_at_once = made.files(), list[bool]()
    monkeypatch.setattr(CapturedCluster, "quorum", lambda _cluster: ended_at_once.append(interruption.request()))

    with interruption.command(), pytest.raises(KeyboardInterrupt):
        made.add()

    assert ended_at_once == [True]
    assert [one for one in made.files() if "manifests" in one.parts] == [
        one for one in before if "manifests" in one.parts
    ]
