"""Topics come and go; every night what they left is removed, and the rest verified: nothing removed is called lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.metadata_logs import DELETING, FIRST_TIMESTAMP_MS, copied, started, updated, write_events
from tieredctl.config.plan_key import known_key, signing_key
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.verification.removed_keys import note_removed
from tieredctl.storage.registry import open_writable_store

LAYOUT = layout_named("local")
CLUSTER_ID = "rTFWgbQKRvehFNx-PhMpIg"
LATER = ("--now", str(FIRST_TIMESTAMP_MS + 1_000 * 86_400_000))
META_PROPERTIES = f"version=1\nnode.id=1\ncluster.id={CLUSTER_ID}\ndirectory.id=ABEiM0RVZneImaq7zN3u_w\n"
SEGMENTS = 3


@dataclass
class Churn:
    """A cluster on which a topic is made and another is deleted every day; nobody deletes what is in remote storage."""

    tieredctl: Tieredctl
    folder: Path
    events: list[MetadataEvent] = field(default_factory=list)
    live: list[TopicIdPartition] = field(default_factory=list)
    _made: int = 0

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def make_topic(self) -> TopicIdPartition:
        """With segments in remote storage."""
        self._made += 1
        topic_id = uuid_text((self._made << 64 | 7).to_bytes(16))
        partition = TopicIdPartition(topic_id, f"day-{self._made}", 0)
        self.live.append(partition)
        for number in range(SEGMENTS):
            segment = copied(100 * self._made + number, 10 * number, 10 * number + 9, partition=partition)
            self.add(*segment)
            assert isinstance(segment[0], RemoteLogSegmentMetadata)
            for key in LAYOUT.promised_objects(segment[0]).values():
                file = self.store / key
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(bytes(segment[0].segment_size_in_bytes if key.endswith(".log") else 0))
        return partition

    def add(self, *events: MetadataEvent) -> None:
        self.events += events
        write_events(self.folder / "data", *self.events)
        (self.folder / "data" / META_PROPERTIES_FILE).write_text(META_PROPERTIES)
        (self.folder / "live").write_text("".join(f"{one.topic_id}\n" for one in self.live))

    def delete_topic(self) -> TopicIdPartition:
        """The oldest. A broker began to delete one of its segments, and stopped."""
        partition = self.live.pop(0)
        number = int(partition.topic.removeprefix("day-"))
        self.add(updated(100 * number, DELETING, partition=partition))
        return partition

    def segments_of(self, partition: TopicIdPartition) -> Sequence[RemoteLogSegmentMetadata]:
        started = (one for one in self.events if isinstance(one, RemoteLogSegmentMetadata))
        return [one for one in started if one.topic_id_partition == partition]

    def live_topics(self) -> Sequence[str | Path]:
        return "--live-topic-ids", self.folder / "live"

    def where(self) -> Sequence[str | Path]:
        return "--log-dir", self.folder / "data", "--store", f"file:{self.store}", "--layout", "local"

    def remove_orphans(self) -> Outcome:
        plan, young = self.folder / "plan", ("--min-age", "0s", "--allow-young", "--max-percent", "100")
        plan.unlink(missing_ok=True)
        planned = self.tieredctl("orphans", "plan", "--to", plan, *self.where(), *young, *self.live_topics())
        assert planned.exit_code == 0, planned.err
        offline = ("--offline-metadata", "--log-dir", self.folder / "data", "--max-percent", "100")
        sure = ("--yes", "--cluster-id", CLUSTER_ID, "--receipts", self.folder / f"receipts-{self._made}")
        return self.tieredctl("orphans", "apply", plan, *offline, *self.live_topics(), *sure)

    def status(self, *words: str | Path) -> Outcome:
        return self.tieredctl("status", *self.where()[:2], *LATER, *words, "-o", "json")

    def verify(self, *words: str | Path) -> Outcome:
        return self.tieredctl("verify", *self.where(), "--level", "listing", *LATER, *words, "-o", "json")


@pytest.fixture
def churn(tieredctl: Tieredctl, tmp_path: Path) -> Churn:
    made = Churn(tieredctl, tmp_path)
    for _ in range(3):
        made.make_topic()
    return made


def findings(outcome: Outcome) -> list[tuple[str, str, int, int]]:
    return [
        (one["code"], one["severity"], one["evidence"]["segments"], one["evidence"].get("objects", 0))
        for one in outcome.document()["items"]
    ]


@pytest.mark.parametrize("asked", [True, False], ids=["live topics", "the ledger alone"])
def test_three_nights_of_removal_are_verified_clean(churn: Churn, asked: bool) -> None:
    said = churn.live_topics() if asked else ()
    for night in range(1, 4):
        churn.delete_topic()
        churn.make_topic()
        assert churn.remove_orphans().exit_code == 0

        outcome = churn.verify(*said)

        assert outcome.exit_code == 0
        code = "topic-gone" if asked else "object-removed"  # which topics are gone, the ledger does not prove
        assert findings(outcome) == [(code, "info", SEGMENTS, 0)] * night
        assert outcome.document()["summary"]["complete"] is True


def test_what_was_removed_is_not_stuck_on_the_screen_that_knows_the_store(churn: Churn) -> None:
    gone = churn.delete_topic()
    before = churn.status()
    assert churn.remove_orphans().exit_code == 0

    without_store, after = churn.status(), churn.status(*churn.where()[2:])

    stuck = [one.document()["summary"]["stuck"] for one in (before, without_store, after)]
    assert stuck == [{"copies": 0, "deletions": 1}, {"copies": 0, "deletions": 1}, {"copies": 0, "deletions": 0}]
    assert [one.exit_code for one in (before, without_store, after)] == [3, 3, 0]
    (found,) = after.document()["summary"]["findings"]
    assert (found["code"], found["severity"], found["evidence"]["topicId"]) == ("object-removed", "info", gone.topic_id)


def test_before_the_removal_they_need_attention_and_name_the_remedy(churn: Churn) -> None:
    gone = churn.delete_topic()
    segment = churn.segments_of(gone)[1]

    outcome = churn.verify(*churn.live_topics())
    of_one = churn.verify(*churn.live_topics(), "--segment-id", segment.segment_id)

    assert (outcome.exit_code, findings(outcome)) == (3, [("topic-gone", "warning", SEGMENTS, SEGMENTS * 5)])
    assert outcome.document()["items"][0]["remedy"] == f"tieredctl partition remove {gone.topic_id} …"
    assert findings(of_one) == [("topic-gone", "warning", 1, 5)]


def test_what_is_missing_of_a_live_topic_is_missing_whatever_the_ledger_says(churn: Churn) -> None:
    """And so is what is missing besides what was removed."""
    churn.delete_topic()
    assert churn.remove_orphans().exit_code == 0
    segment = churn.segments_of(churn.live[0])[0]
    missing = churn.store / next(iter(LAYOUT.promised_objects(segment).values()))
    whole = missing.read_bytes()
    missing.unlink()
    besides = churn.verify()
    missing.write_bytes(whole)
    churn.live.insert(0, TopicIdPartition(uuid_text((1 << 64 | 7).to_bytes(16)), "day-1", 0))
    churn.add()

    of_a_live_topic = churn.verify(*churn.live_topics())

    assert (besides.exit_code, of_a_live_topic.exit_code) == (4, 4)
    assert [one["code"] for one in besides.document()["items"]].count("object-missing") == 1
    assert "object-missing" in {one["code"] for one in of_a_live_topic.document()["items"]}


def test_what_a_plan_removed_is_no_proof_that_its_topic_is_gone(churn: Churn) -> None:
    churn.delete_topic()
    assert churn.remove_orphans().exit_code == 0
    live = churn.live[0]
    segment = started(7_000, 30, 39, partition=live)
    churn.add(segment)
    for key in LAYOUT.promised_objects(segment).values():
        (churn.store / key).write_bytes(b"")
    stuck = churn.verify(*churn.live_topics())
    for key in LAYOUT.promised_objects(segment).values():
        (churn.store / key).unlink()
    store = open_writable_store(f"file:{churn.store}", {})
    note_removed(store, known_key(), "plan-7", list(LAYOUT.promised_objects(segment).values()))

    for words in ((), churn.live_topics()):
        outcome = churn.verify(*words)

        found = {one["evidence"].get("planId"): one["code"] for one in outcome.document()["items"]}
        assert (outcome.exit_code, found["plan-7"]) == (0, "object-removed"), words
        assert ("topic-gone" in found.values()) is bool(words)
    assert (stuck.exit_code, "copy-stuck" in {one["code"] for one in stuck.document()["items"]}) == (3, True)


def test_a_list_that_has_none_of_the_topics_hides_no_loss(churn: Churn, tmp_path: Path) -> None:
    for listed in ("", "Ex-aw3fEQIi3do0H9Y7cKQ\n"):
        (tmp_path / "list").write_text(listed)

        assert churn.verify("--live-topic-ids", tmp_path / "list")[:2] == (2, ""), listed


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without one"])
def test_a_loss_behind_a_note_that_anybody_could_have_written_stays_a_warning(churn: Churn, has_key: bool) -> None:
    partition = churn.live[0]
    keys = list(LAYOUT.promised_objects(started(100, 0, 9, partition=partition)).values())
    if has_key:
        assert signing_key()
    for key in keys:
        (churn.store / key).unlink()
    lost = churn.verify()
    note_removed(open_writable_store(f"file:{churn.store}", {}), None, "plan-7", keys)

    hidden = churn.verify()

    assert (lost.exit_code, hidden.exit_code) == (4, 3)
    assert [(one["code"], one["severity"]) for one in hidden.document()["items"]] == [("object-removed", "warning")]
