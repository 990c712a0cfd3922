"""Backup sets are immutable, dated and chained: what is missing, altered, cut or swapped is named with its place."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.backup.captured_sets import CREATED_MS, CapturedSets, captured_state
from tests.cli.command_line import Tieredctl
from tests.cli.running_exporter import Samples, samples_of
from tests.metadata_logs import write_log
from tests.monitoring.alerts import firing, rule_names
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.kraft.difference import changes
from tieredctl.kraft.entries import Kind
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.backup.cluster_state import fetch_cluster_state, read_cluster_state
from tieredctl.ops.backup.manifests import (
    CLUSTER_FILE,
    EVENTS_FILE,
    GROUPS_FILE,
    OFFSETS_FILE,
    SETTINGS_FILE,
    EventRange,
    SetFile,
    read_manifest,
)
from tieredctl.ops.backup.sets import ClusterSets, publish
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.ports.snapshot_source import LeaderChanged, QuorumLeader
from tieredctl.storage.file import FileStore
from tieredctl.storage.registry import open_writable_store


def known(sets: CapturedSets) -> ClusterSets[WritableObjectStore]:
    return ClusterSets(open_writable_store(f"file:{sets.folder}", {}), sets.cluster_id)


def altered(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_a_set_holds_the_cluster_as_its_log_says(sets: CapturedSets) -> None:
    one = known(sets).read(1).manifest

    state = read_cluster_state(known(sets).read_file(one, CLUSTER_FILE), one.metadata_log_end)

    assert [*changes(captured_state(sets.data).image, state.image)] == []
    assert (one.created_ms, one.unread, one.base) == (CREATED_MS, (), 1)


@pytest.mark.parametrize("sets_without_events", [0, 2])
def test_a_log_that_lost_its_end_and_grew_again_begins_a_chain_of_its_own(
    captures: Path, tmp_path: Path, sets_without_events: int
) -> None:
    made = CapturedSets.of(captures, tmp_path)
    for _ in range(sets_without_events):
        assert made.add().manifest.base == 1
    before = [record for chunk in LogDirectories([made.data]).chunks(0) for record in chunk.records()]
    kept = len(before) - 3
    grown = [
        Record(offset, one.timestamp_ms + (offset >= kept), None, one.value)
        for offset, one in enumerate([*before, *before[-3:]])
    ]
    shutil.copytree(made.data, tmp_path / "data")
    shutil.rmtree(tmp_path / "data/__remote_log_metadata-0")
    write_log(tmp_path / "data", 0, [encode_batch([one]) for one in grown])
    made.data = tmp_path / "data"

    written = made.add().manifest

    assert (written.base, written.events[0]) == (written.number, EventRange(0, len(grown)))


def test_a_second_set_has_only_what_is_new(sets: CapturedSets) -> None:
    first, second = (known(sets).read(number).manifest for number in (1, 2))

    assert all(one.start_offset == one.end_offset for one in second.events.values())
    assert {number: one.end_offset for number, one in first.events.items()} == {
        number: one.end_offset for number, one in second.events.items()
    }
    assert second.base == 1
    first_file, second_file = first.file(EVENTS_FILE), second.file(EVENTS_FILE)
    assert first_file is not None
    assert second_file is not None
    assert second_file.size < first_file.size


def test_after_a_full_set_no_earlier_one_is_needed(sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl) -> None:
    sets.add(full=True)
    sets.add()
    verify = ("backup", "verify", "--from", f"file:{sets.folder}")
    shutil.rmtree(sets.folder / sets.cluster_id / known(sets).read(1).manifest.folder)
    half = tieredctl(*verify)
    for number in (1, 2):
        (sets.folder / known(sets).manifest_key(number)).unlink()

    whole = tieredctl(*verify)
    restored = tieredctl("restore", "apply", *sets.words(f"1={tmp_path}/node"), *sets.confirmed)

    assert [known(sets).read(number).manifest.base for number in (3, 4)] == [3, 3]
    assert (half.exit_code, whole.exit_code) == (ExitCode.CORRUPTION, ExitCode.CLEAN), whole.err
    assert restored.exit_code == ExitCode.INCOMPLETE, restored.err  # the captured events are not whole


def test_damage_to_any_file_is_found_at_its_place(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    damages: list[Callable[[Path], None]] = [altered, cut, Path.unlink]
    for file, damage in product(sets.files(), damages):
        data = file.read_bytes()
        damage(file)

        verified = tieredctl("backup", "verify", "--from", f"file:{sets.folder}", "-o", "json")

        found = verified.document()["items"]
        if file.name == "00000002.json" and not file.exists():
            assert verified.document()["summary"]["newest"] == 1  # nothing tells that there was a newer one
        else:
            assert verified.exit_code == ExitCode.CORRUPTION, file
            assert {one["code"] for one in found} == {FindingCode.BACKUP_DAMAGED}
            assert str(file.relative_to(sets.folder)) in {one["evidence"]["key"] for one in found}
        file.write_bytes(data)
    assert tieredctl("backup", "verify", "--from", f"file:{sets.folder}").exit_code == ExitCode.CLEAN


def test_no_restore_begins_with_a_damaged_set(sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl) -> None:
    manifest = known(sets).read(2).manifest
    needed = [known(sets).file_key(manifest, name) for name in (CLUSTER_FILE, EVENTS_FILE)]
    for key in (*needed, known(sets).manifest_key(1), known(sets).manifest_key(2)):
        file = sets.folder / key
        data = file.read_bytes()
        altered(file)

        refused = tieredctl("restore", "apply", *sets.words(f"1={tmp_path}/node"), *sets.confirmed)

        assert refused.exit_code == ExitCode.CORRUPTION, key
        assert not (tmp_path / "node").exists()
        file.write_bytes(data)


def test_a_file_that_no_backup_wrote_is_refused_though_its_checksum_is_right(
    sets: CapturedSets, tieredctl: Tieredctl
) -> None:
    manifest = known(sets).read(2).manifest
    ends = {"topicId": "x", "partition": 0}
    hostile = {
        OFFSETS_FILE: (*_NO_ITEMS, [ends | {"earliest": None, "latest": 3}], [ends | {"earliest": 4, "latest": 3}]),
        GROUPS_FILE: (*_NO_ITEMS, [{"group": "g", "topic": "orders7", "partition": "x", "offset": 1}]),
    }
    for name, contents in hostile.items():
        file = sets.folder / known(sets).file_key(manifest, name)
        before = file.read_bytes()
        for content in contents:
            data = content if isinstance(content, bytes) else json.dumps({"items": content}).encode()
            file.write_bytes(data)
            files = [SetFile.of(name, data) if one.name == name else one for one in manifest.files]
            (sets.folder / known(sets).manifest_key(2)).write_bytes(replace(manifest, files=files).encode())

            refused = tieredctl("restore", "plan", *sets.words("1"))

            assert (refused.exit_code, name in refused.err) == (ExitCode.CORRUPTION, True), (content, refused.err)
        file.write_bytes(before)


_NO_ITEMS = (b"", b"[]", b"{}", b"[" * 100_000, 5, [5], [{"topicId": 5}])


def test_swapped_manifests_and_files_are_found(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    first, second = (sets.folder / known(sets).manifest_key(number) for number in (1, 2))
    before = first.read_bytes(), second.read_bytes()
    first.write_bytes(before[1])
    second.write_bytes(before[0])

    swapped = tieredctl("backup", "verify", "--from", f"file:{sets.folder}", "-o", "json")

    assert (swapped.exit_code, len(swapped.document()["items"])) == (ExitCode.CORRUPTION, 2)


def test_a_set_made_after_another_history_does_not_follow(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    first = sets.folder / known(sets).manifest_key(1)
    first.write_bytes(replace(read_manifest(first.read_bytes()), created_ms=CREATED_MS + 1).encode())

    verified = tieredctl("backup", "verify", "--from", f"file:{sets.folder}", "-o", "json")

    assert [one["evidence"]["set"] for one in verified.document()["items"]] == [2]


def test_of_two_runs_at_once_one_has_the_number(sets: CapturedSets) -> None:
    manifest = known(sets).read(2).manifest

    with pytest.raises(TieredctlError) as refused:
        publish(known(sets), manifest, [])

    assert refused.value.code is ErrorCode.LOCKED


def test_another_clusters_sets_are_refused(sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl) -> None:
    words = [word if word != sets.cluster_id else "AAAAAAAAAAAAAAAAAAAAAQ" for word in sets.confirmed]

    refused = tieredctl("restore", "apply", *sets.words(f"1={tmp_path}/node"), *words)

    assert refused.exit_code == ExitCode.USAGE
    assert not (tmp_path / "node").exists()


def test_status_has_the_age_of_the_newest_that_can_be_restored(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    metrics = sets.folder.parent / "metrics"
    words = ("backup", "status", "--from", f"file:{sets.folder}", "-o", "json")
    young = tieredctl(*words, "--max-age", "30000d", "--metrics-file", metrics)
    old = tieredctl(*words[:-2], "--max-age", "1h")
    manifest = known(sets).read(2).manifest
    (sets.folder / known(sets).file_key(manifest, CLUSTER_FILE)).unlink()

    behind = tieredctl(*words, "--max-age", "30000d")

    assert young.exit_code == ExitCode.INCOMPLETE  # the captured events are not whole
    assert young.document()["summary"]["newestRestorable"] == 2
    assert "tieredctl_newest_restorable_age_ms" in metrics.read_text()
    assert "can be restored is" in old.out + old.err
    assert old.exit_code == ExitCode.INCOMPLETE
    assert behind.document()["summary"]["newestRestorable"] == 1


def test_status_names_what_is_wrong_with_sets_after_the_newest_that_can_be_restored(
    sets: CapturedSets, tieredctl: Tieredctl
) -> None:
    key = known(sets).manifest_key(2)
    checkpoint = sets.folder / known(sets).file_key(known(sets).read(2).manifest, CLUSTER_FILE)
    words = ("backup", "status", "--from", f"file:{sets.folder}", "--max-age", "30000d")

    faults: list[tuple[Path, Callable[[Path], object]]] = [
        (checkpoint, cut),
        (checkpoint, Path.unlink),
        (sets.folder / key, altered),
    ]
    for path, break_it in faults:
        break_it(path)
        status = tieredctl(*words)
        assert (status.exit_code, key in status.err) == (ExitCode.CORRUPTION, True), status.err
    sets.add(full=True)
    assert tieredctl(*words).exit_code == ExitCode.CLEAN


@pytest.mark.integration
def test_an_alert_fires_where_no_young_and_whole_set_is_there_and_no_other_time(
    sets: CapturedSets, tieredctl: Tieredctl, tmp_path: Path
) -> None:
    metrics = tmp_path / "metrics"
    tieredctl("backup", "status", "--from", f"file:{sets.folder}", "--max-age", "30000d", "--metrics-file", metrics)
    age, code = (f"tieredctl_{name}" for name in ("newest_restorable_age_ms", "exit_code"))
    command = ("command=backup status",)
    seen = samples_of(metrics.read_text())
    well = seen | {(age, *command): 20 * 3_600_000, (code, *command): 0}
    cases: dict[str, tuple[Samples, set[str]]] = {
        "well": (well, set()),
        "old": (well | {(age, *command): 27 * 3_600_000}, {"TieredBackupOld"}),
        "incomplete": (well | {(code, *command): 5}, {"TieredBackupNotWhole"}),
        "none": ({key: value for key, value in well.items() if key[0] != age}, {"TieredBackupNotWhole"}),
    }

    assert seen.keys() == well.keys()
    for name, (samples, expected) in cases.items():
        assert firing([samples], time.time(), tmp_path) == expected, name
    assert set().union(*(expected for _, expected in cases.values())) == rule_names("tiered-storage-backups")


def test_a_clock_ahead_makes_no_set_young(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    (second,) = sets.folder.rglob("00000002.json")
    ahead = replace(read_manifest(second.read_bytes()), created_ms=CREATED_MS * 2)
    second.write_bytes(ahead.encode())
    os.utime(second, (CREATED_MS / 1000, CREATED_MS / 1000))

    status = tieredctl("backup", "status", "--from", f"file:{sets.folder}", "-o", "json").document()

    assert status["summary"]["newestRestorable"] == 2
    assert status["summary"]["newestRestorableAgeMs"] == status["items"][0]["ageMs"] > 0


def test_the_age_of_a_set_that_is_dated_after_now_is_unknown(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    later_ms = int(time.time() * 1000) + 7_200_000
    for path in sets.folder.glob("*/manifests/*.json"):
        path.write_bytes(replace(read_manifest(path.read_bytes()), created_ms=later_ms, previous=None).encode())
        os.utime(path, (later_ms / 1000, later_ms / 1000))
    next(sets.folder.rglob("00000002.json")).unlink()

    status = tieredctl("backup", "status", "--from", f"file:{sets.folder}", "-o", "json")

    summary = status.document()["summary"]
    assert (summary["newestRestorable"], summary["newestRestorableAgeMs"]) == (1, None)
    assert "its age is unknown" in status.err + status.out


def test_no_age_is_told_where_the_store_has_another_time(
    sets: CapturedSets, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for skew_ms in (-86_400_000, 86_400_000):
        monkeypatch.setattr(FileStore, "time_ms", lambda _, skew_ms=skew_ms: int(time.time() * 1000) + skew_ms)

        status = tieredctl("backup", "status", "--from", f"file:{sets.folder}", "--max-age", "30000d")

        assert (status.exit_code, "The clock of" in status.err) == (ExitCode.FAILURE, True), skew_ms


def test_after_a_damaged_newest_manifest_only_a_full_set_follows(sets: CapturedSets, tieredctl: Tieredctl) -> None:
    (second,) = sets.folder.rglob("00000002.json")
    endless = replace(read_manifest(second.read_bytes()), number=math.inf)  # type: ignore[arg-type]
    for data in (second.read_bytes()[:-9], endless.encode()):
        second.write_bytes(data)
        with pytest.raises(TieredctlError) as refused:
            sets.add()
        assert refused.value.code is ErrorCode.UNDECODABLE

    done = sets.add(full=True)

    assert FindingCode.BACKUP_DAMAGED in {one.code for one in done.findings}
    assert (done.manifest.number, done.manifest.base, done.manifest.previous) == (3, 3, None)
    status = tieredctl("backup", "status", "--from", f"file:{sets.folder}", "-o", "json").document()
    assert status["summary"]["newestRestorable"] == 3


def test_settings_of_the_remote_storage_manager_are_named_where_brokers_hide_their_values(sets: CapturedSets) -> None:
    name = "rsm.config.storage.s3.bucket.name"
    manifest = known(sets).read(2).manifest

    items = json.loads(known(sets).read_file(manifest, SETTINGS_FILE))["items"]

    assert {one["name"]: one["value"] for one in items}[name] is None
    assert f"the value of {name} of brokers" in manifest.left_out


def test_where_leaders_change_all_the_time_the_reading_ends(tmp_path: Path) -> None:
    class Restless:
        def leader(self) -> QuorumLeader:
            return QuorumLeader(1, 1, None, 0, 0)

        def log_after(self, snapshot: object) -> Iterator[bytes]:
            raise LeaderChanged

    with pytest.raises(TieredctlError) as ended:
        fetch_cluster_state(Restless(), tmp_path)  # type: ignore[arg-type]

    assert ended.value.code is ErrorCode.BROKER_UNREACHABLE


def test_what_the_user_may_not_see_is_named(captures: Path, tmp_path: Path) -> None:
    made = CapturedSets.of(captures, tmp_path, denied=("orders7",))

    backup = made.add()

    assert FindingCode.BACKUP_INCOMPLETE in {one.code for one in backup.findings}
    assert "orders7" in backup.manifest.unread[-1]


def test_where_either_end_of_a_log_is_unknown_neither_is_kept(captures: Path, tmp_path: Path) -> None:
    made = CapturedSets.of(captures, tmp_path)

    for unknown in ((None, 500), (0, None)):
        made.ends["orders7"] = {0: (0, 500), 1: unknown, 2: (7, 9)}
        manifest = made.add().manifest

        assert "partition 1 of topic orders7" in manifest.unread[-1], unknown
        items = json.loads(known(made).read_file(manifest, OFFSETS_FILE))["items"]
        assert [one["partition"] for one in items if one["topic"] == "orders7"] == [0, 2], unknown


def test_secrets_are_left_out_and_named(captures: Path) -> None:
    state = captured_state(captures / "kafka-4.3.1/data")
    credential = {"Name": "alice", "Mechanism": 2, "Salt": b"s", "StoredKey": b"k", "ServerKey": b"k", "Iterations": 1}
    state.image.credentials[2, "alice"] = credential
    state.image.configs[4, "1"] = {"rsm.config.s3.secret": "hush", "log.retention.ms": "7"}

    kept = state.without_secrets()

    assert [*kept.image.credentials] == []
    assert kept.image.configs[4, "1"] == {"log.retention.ms": "7"}
    assert len(kept.left_out) == 2
    assert b"hush" not in kept.checkpoint()
    assert Kind.CREDENTIAL not in {one["kind"] for one in kept.document()}
