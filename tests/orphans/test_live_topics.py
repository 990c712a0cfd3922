"""Which topics there are: "gone" takes proof, and what nobody clearly says is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.kraft_snapshots import remove_topic_record, snapshot_bytes, topic_record, write_snapshot
from tests.metadata_logs import DELETED, DELETING, FIRST_TIMESTAMP_MS, TOPIC_ID, copied, updated
from tests.metadata_quorum_files import MetadataFolder
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.formats.control_records import encode_control_record
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.formats.record_batches import ControlType, Record
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replica import SnapshotId
from tieredctl.model.events import MetadataEvent
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.cluster.live_topics import (
    KnownTopics,
    RememberedTopics,
    TopicSources,
    live_topics,
)
from tieredctl.ops.cluster.offline_cluster import CLOCK_SKEW_MS, OfflineCluster
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

OTHER_TOPIC_ID, THIRD_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ", "rTFWgbQKRvehFNx-PhMpIg"
CLUSTER_ID, OTHER_CLUSTER_ID = "5lgVbV_vRSmEjoqjPWDZrA", "F5dZ1x0ZQiWMSNwsMmpQOA"
AS_OF_MS = FIRST_TIMESTAMP_MS
LONG_AGO_MS = AS_OF_MS - 100 * CLOCK_SKEW_MS


@dataclass
class Metadata(EventsInMemory):
    """Metadata that says which cluster it is of."""

    cluster_id: str | None = CLUSTER_ID


@dataclass
class Answers:
    """A cluster with these topics; notes what it was asked."""

    answers: dict[str, bool | None]
    asked: list[list[str]] = field(default_factory=list)

    def ask(self, topic_ids: Collection[str]) -> dict[str, bool | None]:
        self.asked.append(sorted(topic_ids))
        return {topic_id: self.answers[topic_id] for topic_id in topic_ids}

    def describe(self) -> dict[str, object]:
        return {"kind": "cluster"}


def offline(
    topic_ids: frozenset[str],
    as_of_ms: int,
    cluster_id: str | None = CLUSTER_ID,
    *,
    withdrawn: frozenset[str] = frozenset(),
    unknown_records: int = 0,
) -> OfflineCluster:
    """A cluster by a snapshot with these topics."""
    image = ClusterImage(unknown_records=Counter({"99, version 0": unknown_records} if unknown_records else {}))
    return OfflineCluster(
        Path("some.checkpoint"), image, topic_ids, as_of_ms, withdrawn, SnapshotId(1, 10), 0, 0, cluster_id
    )


def by_snapshot(
    first_events_ms: dict[str, int],
    topic_ids: frozenset[str] = frozenset({OTHER_TOPIC_ID}),
    *,
    snapshot_of: str | None = CLUSTER_ID,
    metadata_of: str | None = CLUSTER_ID,
) -> bool | None:
    """Whether TOPIC_ID is live."""
    snapshot = offline(topic_ids, AS_OF_MS, snapshot_of)
    return live_topics(TopicSources(snapshot=snapshot), first_events_ms, Metadata((), metadata_of)).is_live(TOPIC_ID)


def test_what_is_live_without_a_source_and_by_a_list_of_ids() -> None:
    # Without a source nothing is known.
    found = live_topics(TopicSources(), {TOPIC_ID: LONG_AGO_MS}, Metadata(()))
    assert found.is_live(TOPIC_ID) is None
    assert found.describe() is None
    # A list of ids is all that there is.
    found = live_topics(TopicSources(frozenset({TOPIC_ID})), {}, Metadata(()))
    assert (found.is_live(TOPIC_ID), found.is_live(OTHER_TOPIC_ID)) == (True, False)
    # A topic is known if the metadata names it or it is live.
    live = live_topics(TopicSources(frozenset({OTHER_TOPIC_ID})), {}, Metadata(()))
    known = KnownTopics({TOPIC_ID: 1}, live)
    assert [one in known for one in (TOPIC_ID, OTHER_TOPIC_ID, THIRD_TOPIC_ID)] == [True, True, False]
    # A topic that was gone is gone where nobody tells any more.
    gone: set[str] = set()
    first = RememberedTopics(live_topics(TopicSources(frozenset({OTHER_TOPIC_ID})), {}, Metadata(())), gone)
    assert first.is_live(TOPIC_ID) is False
    silent = RememberedTopics(live_topics(TopicSources(), {}, Metadata(())), gone)
    assert (silent.is_live(TOPIC_ID), silent.is_live(OTHER_TOPIC_ID)) == (False, None)


def test_a_snapshot_tells_of_topics_that_were_there_before_it() -> None:
    assert by_snapshot({TOPIC_ID: LONG_AGO_MS}, frozenset({TOPIC_ID})) is True
    assert by_snapshot({TOPIC_ID: LONG_AGO_MS}) is False
    for first_ms in (AS_OF_MS - CLOCK_SKEW_MS, AS_OF_MS, AS_OF_MS + 1, -1):
        assert by_snapshot({TOPIC_ID: first_ms}) is None, first_ms
    assert by_snapshot({OTHER_TOPIC_ID: LONG_AGO_MS}) is None


def test_a_snapshot_of_no_known_cluster_tells_only_if_it_shares_a_topic_with_the_metadata() -> None:
    """It may be another cluster's, which has none of this one's topics."""
    for snapshot_of, metadata_of in ((None, CLUSTER_ID), (CLUSTER_ID, None), (None, None)):
        answer = by_snapshot({TOPIC_ID: LONG_AGO_MS}, snapshot_of=snapshot_of, metadata_of=metadata_of)
        assert answer is None, (snapshot_of, metadata_of)
    both = {TOPIC_ID: LONG_AGO_MS, OTHER_TOPIC_ID: LONG_AGO_MS}
    assert by_snapshot(both, snapshot_of=None) is False


def test_a_snapshot_of_another_cluster_is_refused() -> None:
    with pytest.raises(TieredctlError, match=f"{OTHER_CLUSTER_ID}.*{CLUSTER_ID}") as refused:
        by_snapshot({TOPIC_ID: LONG_AGO_MS}, snapshot_of=OTHER_CLUSTER_ID)

    assert refused.value.exit_code is ExitCode.USAGE


def test_a_cluster_is_asked_at_once_for_all_topics_of_the_metadata_and_for_each_other_one_once() -> None:
    cluster = Answers({TOPIC_ID: True, OTHER_TOPIC_ID: None, THIRD_TOPIC_ID: False})

    found = live_topics(TopicSources(cluster=cluster), {TOPIC_ID: 1, OTHER_TOPIC_ID: 2}, Metadata(()))
    answers = [found.is_live(one) for one in (TOPIC_ID, OTHER_TOPIC_ID, THIRD_TOPIC_ID, THIRD_TOPIC_ID)]

    assert answers == [True, None, False, False]
    assert cluster.asked == [sorted([TOPIC_ID, OTHER_TOPIC_ID]), [THIRD_TOPIC_ID]]


def test_a_snapshot_is_read_with_its_moment_and_the_cluster_of_its_log_directory(tmp_path: Path) -> None:
    meta = MetaProperties(KRAFT_VERSION, CLUSTER_ID, 1, None)
    (tmp_path / "meta.properties").write_bytes(encode_meta_properties(meta))
    records = [topic_record(TOPIC_ID), topic_record(OTHER_TOPIC_ID), remove_topic_record(OTHER_TOPIC_ID)]
    file = write_snapshot(tmp_path, AS_OF_MS, *records)

    snapshot = OfflineClusterPlace(file).read()

    assert (snapshot.path, snapshot.topic_ids) == (file, frozenset({TOPIC_ID}))
    assert (snapshot.committed_ms, snapshot.cluster_id) == (AS_OF_MS, CLUSTER_ID)


def test_a_snapshot_elsewhere_is_of_no_known_cluster_and_one_that_is_missing_a_wrong_argument(tmp_path: Path) -> None:
    file = tmp_path / "copied.checkpoint"
    file.write_bytes(snapshot_bytes(AS_OF_MS, topic_record(TOPIC_ID)))

    assert OfflineClusterPlace(file).read().cluster_id is None
    with pytest.raises(TieredctlError) as missing:
        OfflineClusterPlace(tmp_path / "none.checkpoint").read()
    assert missing.value.exit_code is ExitCode.USAGE


def test_a_snapshot_that_was_cut_is_refused(tmp_path: Path) -> None:
    whole = snapshot_bytes(AS_OF_MS, topic_record(TOPIC_ID), topic_record(OTHER_TOPIC_ID))
    file = tmp_path / "cut.checkpoint"

    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(TieredctlError, match="KRaft snapshot"):
            OfflineClusterPlace(file).read()


def test_a_topic_in_a_version_that_is_not_known_leaves_what_is_missing_unknown(tmp_path: Path) -> None:
    later = topic_record(TOPIC_ID)
    file = write_snapshot(tmp_path, AS_OF_MS, topic_record(OTHER_TOPIC_ID), later[:2] + b"\x07" + later[3:])
    sources = TopicSources(snapshot=OfflineClusterPlace(file).read())
    long_ago = {TOPIC_ID: LONG_AGO_MS, OTHER_TOPIC_ID: LONG_AGO_MS}

    found = live_topics(sources, long_ago, Metadata((), None))

    assert found.is_live(TOPIC_ID) is None
    assert found.is_live(OTHER_TOPIC_ID) is True
    assert (found.describe() or {})["unknownRecords"] == 1


def voters_record(*node_ids: int) -> Record:
    versions = {"MinSupportedVersion": 0, "MaxSupportedVersion": 1}
    voters = [
        {"VoterId": one, "VoterDirectoryId": bytes(16), "Endpoints": [], "KRaftVersionFeature": versions}
        for one in node_ids
    ]
    return encode_control_record(ControlType.KRAFT_VOTERS, {"Version": 0, "Voters": voters}, offset=0, timestamp=1)


def node_of_voters(tmp_path: Path, *voters: int) -> MetadataFolder:
    """A node whose snapshot has TOPIC_ID, which its log then removes."""
    folder = MetadataFolder(tmp_path / "__cluster_metadata-0")
    folder.append(topic_record(TOPIC_ID), topic_record(OTHER_TOPIC_ID), timestamp=LONG_AGO_MS)
    folder.snapshot(LONG_AGO_MS, [topic_record(TOPIC_ID), topic_record(OTHER_TOPIC_ID)])
    folder.append(remove_topic_record(TOPIC_ID), timestamp=AS_OF_MS)
    listed = ",".join(f'{{"voterId":{one}}}' for one in voters)
    state = '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    (folder.path / "quorum-state").write_text(f'{state}"currentVoters":[{listed}],"data_version":0}}')
    return folder


def answers(path: Path, topic_id: str) -> bool | None:
    first = {TOPIC_ID: LONG_AGO_MS - 2 * CLOCK_SKEW_MS, OTHER_TOPIC_ID: 1, THIRD_TOPIC_ID: LONG_AGO_MS + 1}
    sources = TopicSources(snapshot=OfflineClusterPlace(path).read())
    return live_topics(sources, first, Metadata((), None)).is_live(topic_id)


def test_the_log_after_the_snapshot_makes_it_current(tmp_path: Path) -> None:
    """Where one controller votes, all of its log is committed."""
    folder = node_of_voters(tmp_path, 1).path
    alone = next(folder.glob("*.checkpoint"))

    assert [answers(alone, one) for one in (TOPIC_ID, OTHER_TOPIC_ID, THIRD_TOPIC_ID)] == [True, True, None]
    assert [answers(folder, one) for one in (TOPIC_ID, OTHER_TOPIC_ID, THIRD_TOPIC_ID)] == [False, True, False]


def test_what_one_of_several_voters_removed_after_its_snapshot_may_not_be_committed(tmp_path: Path) -> None:
    for voters in ((), (1, 2, 3)):
        folder = node_of_voters(tmp_path / str(len(voters)), *voters).path
        found = [answers(folder, one) for one in (TOPIC_ID, OTHER_TOPIC_ID, THIRD_TOPIC_ID)]
        assert found == [None, True, None], voters


def test_voters_that_the_log_adds_may_undo_what_it_removed(tmp_path: Path) -> None:
    """The records of the log count, not only quorum-state, which a node writes at elections."""
    folder = node_of_voters(tmp_path, 1)
    folder.append_control(voters_record(1, 2, 3)._replace(timestamp=AS_OF_MS))

    assert answers(folder.path, TOPIC_ID) is None


def test_a_clock_that_ran_ahead_makes_no_topic_gone(tmp_path: Path) -> None:
    """The last record's time counts, not the greatest; and none where times fall by more than clocks may differ."""
    for number, (times, committed_ms) in enumerate(
        [
            ((AS_OF_MS, AS_OF_MS + 1), AS_OF_MS + 1),
            ((AS_OF_MS, AS_OF_MS - CLOCK_SKEW_MS), AS_OF_MS - CLOCK_SKEW_MS),
            ((AS_OF_MS, AS_OF_MS - CLOCK_SKEW_MS - 1, AS_OF_MS), -1),
            ((AS_OF_MS, LONG_AGO_MS), -1),
        ]
    ):
        folder = node_of_voters(tmp_path / str(number), 1)
        for time in times:
            folder.append(timestamp=time)

        cluster = OfflineClusterPlace(folder.path).read()

        assert cluster.committed_ms == committed_ms, times
        expected = [FindingCode.KRAFT_CLOCK_WRONG] * (committed_ms < 0)
        assert [finding.code for finding in cluster.findings()] == expected, times


def test_nothing_was_committed_after_now(tmp_path: Path) -> None:
    cluster = OfflineClusterPlace(node_of_voters(tmp_path, 1).path).read()

    for now_ms in (AS_OF_MS - CLOCK_SKEW_MS, AS_OF_MS, AS_OF_MS + 1):
        assert cluster.by_the_clock(now_ms).committed_ms == min(AS_OF_MS, now_ms)
        assert list(cluster.by_the_clock(now_ms).findings()) == []
    assert cluster.by_the_clock(AS_OF_MS - CLOCK_SKEW_MS - 1).committed_ms == -1


def test_a_cluster_is_asked_after_the_store_was_listed_and_the_metadata_read() -> None:
    """Whatever is asked about is older than the answer: a topic that is made meanwhile is not taken to be gone."""
    order: list[str] = []

    class Told(MemoryStore):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            yield from super().list(prefix, start_after)
            order.append("listed")

    class Read(Metadata):
        def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
            yield from super().chunks(metadata_partition, from_offset)
            order.append("read")

    class Asked(Answers):
        def ask(self, topic_ids: Collection[str]) -> dict[str, bool | None]:
            order.append("asked")
            return super().ask(topic_ids)

    options = ScanOptions(AS_OF_MS, 0, TopicSources(cluster=Asked({TOPIC_ID: True})))
    metadata = EventStream(Read(copied(1, 0, 9)))

    Scan(SpooledListing(Told().list()), LAYOUT, "memory:", lambda: metadata, options).run()

    assert order == ["listed", "read", "asked"]


def scanned(topic_sources: TopicSources, *events: MetadataEvent) -> None:
    """A scan of nothing, by these events."""
    options = ScanOptions(AS_OF_MS, 0, topic_sources)
    Scan(SpooledListing(()), LAYOUT, "memory:", lambda: EventStream(Metadata(events)), options).run()


def code_of(call: Callable[[], object]) -> str | None:
    """Of the refusal, if there is one."""
    try:
        call()
    except TieredctlError as error:
        return error.code
    return None


def test_a_list_or_snapshot_of_none_of_the_topics_that_have_segments_is_doubtful() -> None:
    by_list = TopicSources(frozenset({OTHER_TOPIC_ID}))
    long_after = TopicSources(snapshot=offline(frozenset({OTHER_TOPIC_ID}), AS_OF_MS * 2))
    gone = TopicSources(cluster=Answers({TOPIC_ID: False}))

    assert code_of(lambda: TopicSources(frozenset())) == "topics-doubtful"
    assert code_of(lambda: scanned(by_list, *copied(1, 0, 9))) == "topics-doubtful"
    assert code_of(lambda: scanned(long_after, *copied(1, 0, 9))) == "topics-doubtful"
    assert code_of(lambda: scanned(gone, *copied(1, 0, 9))) is None
    # Topics whose segments are all deleted prove nothing of a list.
    assert code_of(lambda: scanned(by_list, *copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED))) is None
