"""Lost objects of captured clusters come back from each place that has their bytes, as the manager had written them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.recovery.segments_to_heal import (
    CAPTURES,
    FAULTS,
    INTERVAL,
    CapturedCluster,
    VersionedMemoryStore,
    in_quarantine,
    own_objects,
    parts_in,
)
from tests.shares import divided
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.log_scan import LogBlock, OneByOne, scan_log
from tieredctl.formats.record_batches import LOG_OVERHEAD
from tieredctl.kafka.replica_segments import ReplicaDirectories
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.healing.sources import LARGEST_BYTES, demand_small
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.accepted_losses import AcceptedLosses, NothingAccepted, without_accepted
from tieredctl.ops.verification.removed_keys import note_removed
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import RESERVED_FOLDER, StoredObject
from tieredctl.storage.memory import MemoryStore
from tieredctl.wiring.heal import SegmentsHealing
from tieredctl.wiring.index_recovery import IndexIntervals, WantedSegments
from tieredctl.wiring.places import MetadataPlace

OBJECTS = 1_000
PLACES = ("kept-version", "quarantine", "store", "disk", "nowhere")


@pytest.fixture(scope="module", params=CAPTURES)
def cluster(request: pytest.FixtureRequest, captures: Path) -> CapturedCluster:
    return CapturedCluster(captures / request.param, request.param)


@pytest.fixture(scope="module")
def disk(cluster: CapturedCluster, tmp_path_factory: pytest.TempPathFactory) -> ReplicaDirectories:
    return ReplicaDirectories.of([cluster.disk(tmp_path_factory.mktemp("disk"))])


def test_whatever_is_done_to_any_object_it_comes_back_from_each_place_that_has_it(
    cluster: CapturedCluster, disk: ReplicaDirectories
) -> None:
    seen = Counter[tuple[str, str]]()
    for seed in divided(range(OBJECTS)):
        random = Random(seed)
        place, fault = PLACES[seed % len(PLACES)], [*FAULTS][seed // len(PLACES) % len(FAULTS)]
        metadata, another = random.sample(cluster.finished, 2)
        part, key = random.choice([*cluster.keys(metadata).items()])
        whole, other_key = cluster.objects[key], cluster.keys(another).get(part, key)
        broken = FAULTS[fault](whole, cluster.objects[other_key], random)
        store = cluster.store()
        if place == "kept-version":
            store.kept[key] = [whole, *([broken] if broken is not None else [])]
        if place == "quarantine":
            in_quarantine(store, key, whole)
        if broken is None:
            del store._objects[key]
        else:
            store.put(key, broken)
        healer = cluster.healer(
            store, *([cluster.elsewhere()] if place == "store" else []), disks=disk if place == "disk" else None
        )
        case = (cluster.name, seed, place, fault, part.value, metadata.segment_id)

        planned = cluster.plan(healer, metadata)
        outcome = cluster.heal(healer, store, planned)

        if not planned.objects:
            # What verify's full check calls sound needs no healing.
            assert broken == whole or fault in ("bit flip", "of another segment", "cut"), case
        elif place == "nowhere" and planned.not_found():
            assert part is Part.LOG or (part is Part.MANIFEST and "encrypted" in cluster.name), case
            assert own_objects(store) == own_objects(MemoryStore()) | {
                one: data for one, data in cluster.objects.items() if one != key
            } | ({} if broken is None else {key: broken}), case
        else:
            assert outcome.is_complete, (case, outcome.stopped, planned.rows())
            assert parts_in(store, cluster.layout, metadata) == cluster.parts(metadata), case
            if place in ("kept-version", "quarantine", "store"):
                assert own_objects(store) == cluster.objects, case
            kept = [store.read(one.key) for one in store.list(f"{RESERVED_FOLDER}quarantine/")]
            assert broken is None or broken in kept, case
        seen[place, planned.objects[0].action if planned.objects else "sound"] += 1
    assert {one for one, _ in seen} <= {*PLACES}


def test_a_segment_of_which_every_object_is_gone_comes_back_from_a_disk(
    cluster: CapturedCluster, disk: ReplicaDirectories
) -> None:
    for metadata in cluster.finished[3::37]:
        store = cluster.store()
        for key in cluster.keys(metadata).values():
            del store._objects[key]
        healer = cluster.healer(store, disks=disk)

        outcome = cluster.heal(healer, store, cluster.plan(healer, metadata))

        assert outcome.is_complete, (metadata, outcome.stopped)
        assert parts_in(store, cluster.layout, metadata) == cluster.parts(metadata)


@pytest.fixture(scope="module")
def local(captures: Path) -> CapturedCluster:
    return CapturedCluster(captures / "kafka-4.3.1", "kafka-4.3.1")


def longest_chain(cluster: CapturedCluster) -> list[RemoteLogSegmentMetadata]:
    """The segments of the partition that has most."""
    counts = Counter(one.topic_id_partition for one in cluster.finished)
    partition, _ = counts.most_common(1)[0]
    return [one for one in cluster.finished if one.topic_id_partition == partition]


def without_logs(cluster: CapturedCluster, *segments: RemoteLogSegmentMetadata) -> MemoryStore:
    store = cluster.store()
    for one in segments:
        del store._objects[cluster.keys(one)[Part.LOG]]
    return store


def test_a_replica_whose_leader_epochs_contradict_the_lineage_gives_nothing(
    local: CapturedCluster, tmp_path: Path
) -> None:
    metadata = longest_chain(local)[3]
    disk = local.disk(tmp_path / "diverged")
    for log in disk.glob(f"*/{metadata.start_offset:020}.log"):
        log.write_bytes(with_epoch(log.read_bytes(), metadata.segment_leader_epochs[-1][0] + 1))
    store = without_logs(local, metadata)
    healer = local.healer(store, disks=ReplicaDirectories.of([disk]))

    planned = local.plan(healer, metadata)

    (lost,) = planned.not_found()
    assert (lost.part, planned.to_write()) == (Part.LOG, [])
    assert "leader epoch" in (lost.obstacle or "")
    # Another replica beside it did not diverge.
    sound = local.disk(tmp_path / "sound")
    both = local.healer(store, disks=ReplicaDirectories.of([disk, sound]))
    (healed,) = local.plan(both, metadata).to_write()
    assert healed.found is not None
    assert healed.found.place.startswith(str(sound))


def with_epoch(log: bytes, epoch: int) -> bytes:
    """The same batches as another leader would have appended them: the epoch is outside their CRCs."""
    changed = bytearray(log)
    for block in scan_log([log], len(log), OneByOne()):
        assert isinstance(block, LogBlock)
        for position in block.positions:
            at = block.file_position + position + LOG_OVERHEAD
            changed[at : at + 4] = epoch.to_bytes(4, "big")
    return bytes(changed)


def test_a_replica_with_other_bytes_at_the_same_offsets_gives_nothing(local: CapturedCluster, tmp_path: Path) -> None:
    """Of another partition, which by chance has the same offsets, epochs and size: only what is stored beside the log
    shows it."""
    segments = {(one.start_offset, one.end_offset, one.segment_leader_epochs): one for one in local.finished}
    metadata, other = next(
        (one, twin)
        for one in local.finished
        if (twin := segments[one.start_offset, one.end_offset, one.segment_leader_epochs]) is not one
        and local.parts(twin)[Part.LOG] != local.parts(one)[Part.LOG]
    )
    disk = local.disk(tmp_path)
    partition = metadata.topic_id_partition
    log = disk / f"{partition.topic}-{partition.partition}" / f"{metadata.start_offset:020}.log"
    log.write_bytes(local.parts(other)[Part.LOG])
    store = without_logs(local, metadata)

    planned = local.plan(local.healer(store, disks=ReplicaDirectories.of([disk])), metadata)

    assert [one.part for one in planned.not_found()] == [Part.LOG]


@pytest.mark.parametrize("files", [[0], [0, 5], [0, 2, 3]], ids=str)
def test_a_replica_that_rolled_its_segments_elsewhere_has_the_bytes_too(
    local: CapturedCluster, tmp_path: Path, files: list[int]
) -> None:
    """Ten remote segments, in files that begin with these of them."""
    segments = longest_chain(local)[:10]
    name = f"{segments[0].topic_id_partition.topic}-{segments[0].topic_id_partition.partition}"
    replica = local.disk(tmp_path) / name
    for path in replica.glob("*.log"):
        path.unlink()
    for first, end in pairwise([*files, len(segments)]):
        logs = (local.parts(one)[Part.LOG] for one in segments[first:end])
        (replica / f"{segments[first].start_offset:020}.log").write_bytes(b"".join(logs))
    store = without_logs(local, *segments)
    healer = local.healer(store, disks=ReplicaDirectories.of([tmp_path]))

    outcome = local.heal(healer, store, *(local.plan(healer, one) for one in segments))

    assert (outcome.is_complete, outcome.healed) == (True, len(segments))
    assert own_objects(store) == local.objects


def test_a_partition_of_which_every_object_is_gone_comes_back_from_a_disk(
    local: CapturedCluster, tmp_path: Path
) -> None:
    """One segment after the other: producers and leader epochs of each follow from those before."""
    segments = longest_chain(local)
    store = local.store()
    for key in [key for one in segments for key in local.keys(one).values()]:
        del store._objects[key]
    healer, rebuilt = local.healer(store, disks=ReplicaDirectories.of([local.disk(tmp_path)])), dict[str, bytes]()
    plans = []
    for metadata in segments:
        plan = healer.plan(local.segments.finished(metadata.segment_id), INTERVAL, rebuilt)
        rebuilt[metadata.segment_id] = plan.rebuilt_snapshot or b""
        plans.append(plan.without_bytes())

    outcome = local.heal(healer, store, *plans)

    assert outcome.is_complete, outcome.stopped
    assert own_objects(store) == local.objects


def test_a_manifest_is_written_again_as_the_plugin_writes_it(captures: Path) -> None:
    """But for the time of the event, of which the metadata keeps the last alone, and nobody reads it."""
    plain = CapturedCluster(captures / "aiven-plain-4.3.1", "aiven-plain-4.3.1")
    for metadata in plain.finished[::7]:
        store, key = plain.store(), plain.keys(metadata)[Part.MANIFEST]
        del store._objects[key]
        healer = plain.healer(store)

        outcome = plain.heal(healer, store, plain.plan(healer, metadata))

        assert outcome.is_complete
        written, original = json.loads(store.read(key)), json.loads(plain.objects[key])
        for one in (written, original):
            del one["remoteLogSegmentMetadata"]["eventTimestampMs"]
        assert json.dumps(written) == json.dumps(original)
        assert {one: data for one, data in own_objects(store).items() if one != key} == {
            one: data for one, data in plain.objects.items() if one != key
        }


def test_an_encrypted_segment_without_its_data_key_is_encrypted_again_from_a_disk(
    captures: Path, tmp_path: Path
) -> None:
    encrypted = CapturedCluster(captures / "aiven-zstd-encrypted-4.3.1", "aiven-zstd-encrypted-4.3.1")
    metadata = next(one for one in encrypted.finished if one.topic_id_partition.topic == "keep32")
    store, keys = encrypted.store(), encrypted.keys(metadata)
    del store._objects[keys[Part.MANIFEST]]
    healer = encrypted.healer(store, disks=ReplicaDirectories.of([encrypted.folder / "data"]))

    outcome = encrypted.heal(healer, store, encrypted.plan(healer, metadata))

    assert (outcome.is_complete, outcome.written) == (True, 3)
    assert parts_in(store, encrypted.layout, metadata) == encrypted.parts(metadata)
    assert store.read(keys[Part.LOG]) != encrypted.objects[keys[Part.LOG]]
    written, original = (json.loads(one[keys[Part.MANIFEST]]) for one in (own_objects(store), encrypted.objects))
    for one in (written, original):
        del one["remoteLogSegmentMetadata"]["eventTimestampMs"]
        assert one.pop("encryption").keys() == {"dataKey", "aad"}
    assert json.dumps(written) == json.dumps(original)


def test_a_segment_that_is_in_a_table_instead_is_not_called_lost(captures: Path) -> None:
    plain = CapturedCluster(captures / "aiven-plain-4.3.1", "aiven-plain-4.3.1")
    metadata, store = plain.finished[0], plain.store()
    for key in plain.keys(metadata).values():
        del store._objects[key]
    store.put(f"warehouse/orders/metadata/{metadata.segment_id}.puffin", b"")

    with pytest.raises(TieredctlError) as refused:
        plain.plan(plain.healer(store), metadata)

    assert (refused.value.code, "iceberg" in refused.value.message) == (ErrorCode.USAGE, True)


def test_bytes_that_would_need_too_much_memory_are_refused(local: CapturedCluster) -> None:
    metadata = replace(local.finished[0], segment_size_in_bytes=LARGEST_BYTES + 1)

    with pytest.raises(TieredctlError) as refused:
        demand_small(metadata)

    assert refused.value.code is ErrorCode.USAGE


def test_what_changes_between_plan_and_writing_is_left_alone(local: CapturedCluster) -> None:
    metadata = longest_chain(local)[2]
    store = without_logs(local, metadata)
    healer = local.healer(store, local.elsewhere())
    planned = local.plan(healer, metadata)
    store.put(local.keys(metadata)[Part.LOG], b"somebody else's")
    before = own_objects(store)

    outcome = local.heal(healer, store, planned)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.written) == (ErrorCode.WORLD_CHANGED, 0)
    assert own_objects(store) == before


def test_a_segment_whose_metadata_changed_since_the_plan_is_left_alone(local: CapturedCluster) -> None:
    metadata = longest_chain(local)[2]
    store = without_logs(local, metadata)
    healer = local.healer(store, local.elsewhere())
    planned = local.plan(healer, metadata)
    other = replace(planned, metadata=replace(metadata, max_timestamp_ms=metadata.max_timestamp_ms + 1))

    outcome = local.heal(healer, store, other)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.written) == (ErrorCode.WORLD_CHANGED, 0)


class ArchivedStore(VersionedMemoryStore):
    """One of whose objects must be restored from an archive before it can be read; or the whole store is silent."""

    archived = ""
    is_silent = False

    def head(self, key: str) -> StoredObject | None:
        if self.is_silent:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")
        return super().head(key)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if key == self.archived:
            raise TieredctlError(ErrorCode.OBJECT_ARCHIVED, f"{key} is archived.")
        return super().read(key, start, end)


def test_one_segment_that_cannot_be_read_keeps_no_other_from_being_healed(local: CapturedCluster) -> None:
    archived, lost = longest_chain(local)[:2]
    store = ArchivedStore()
    for key, data in local.objects.items():
        store.put(key, data)
    store.archived = local.keys(archived)[Part.LOG]
    del store._objects[local.keys(lost)[Part.TIME_INDEX]]
    places = MetadataPlace()
    healing = SegmentsHealing(None, "memory:", {}, places, None, local.healer(store), IndexIntervals(places, INTERVAL))
    wanted = WantedSegments((archived.segment_id, lost.segment_id))

    healing.plan(wanted, wanted.ids(local.segments), local.segments, NothingAccepted())

    assert [*healing.passed_over] == [archived.segment_id]
    assert [one.metadata for one in healing.plans] == [lost]
    store.is_silent = True
    with pytest.raises(TieredctlError):
        healing.plan(wanted, wanted.ids(local.segments), local.segments, NothingAccepted())


def test_where_the_store_no_longer_answers_nothing_counts_as_accepted(local: CapturedCluster) -> None:
    metadata = local.finished[0]
    findings = SegmentFindings(metadata, local.keys(metadata))
    findings.add(FindingCode.OBJECT_MISSING, Part.LOG, "it is not in the store")

    def read() -> AcceptedLosses:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")

    assert without_accepted(findings.found, local.store(), read) == findings.found


def test_what_tieredctl_removed_itself_comes_back_only_if_it_is_named(local: CapturedCluster) -> None:
    removed, lost = longest_chain(local)[:2]
    store = local.store()
    keys = [*local.keys(removed).values()]
    for key in keys:
        in_quarantine(store, key, local.objects[key])
        del store._objects[key]
    note_removed(store, None, "plan", keys)
    del store._objects[local.keys(lost)[Part.TIME_INDEX]]
    partition, places = removed.topic_id_partition, MetadataPlace()
    selected = Selection(topic_ids=(partition.topic_id,), numbers=(partition.partition,))

    def planned(wanted: WantedSegments) -> SegmentsHealing:
        intervals = IndexIntervals(places, INTERVAL)
        healing = SegmentsHealing(None, "memory:", {}, places, None, local.healer(store), intervals)
        healing.plan(wanted, wanted.ids(local.segments), local.segments, NothingAccepted())
        return healing

    of_all, of_named = planned(WantedSegments(None, selected)), planned(WantedSegments((removed.segment_id,)))

    assert [*of_all.passed_over] == [removed.segment_id]
    assert [one.metadata for one in of_all.plans] == [lost]
    assert of_named.to_write() == len(keys)
