"""`tieredctl wal upload`: what it takes from a log, and what it never takes from a store."""

from __future__ import annotations

from contextlib import suppress
from errno import EIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tieredctl_proposals.model.wal_events import NO_LEADER
from tieredctl_proposals.ops.wal.contents import read_events
from tieredctl_proposals.ops.wal.event_log import EventLog
from tieredctl_proposals.ops.wal.local_batches import local_active_logs
from tieredctl_proposals.ops.wal.upload import ActiveSegmentsUpload, UploadOutcome
from tieredctl_proposals.wal.deletion import segment_deletions

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import CONFIRMED, EVENTS, FIRST, cut_at, upload_words
from tests.metadata_logs import copied, write_events
from tests.wal.killed_store import Killed, killed_after
from tests.wal.local_partitions import CLUSTER_ID, ORDERS, batch, write_partition
from tieredctl.cli.arguments import clock_ms
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.meta_properties import MetaProperties, encode_meta_properties
from tieredctl.kafka.local_logs import read_local_replicas
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.storage.file import FileStore


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_partition(tmp_path / "logs", ORDERS[0], FIRST)
    return tmp_path / "logs"


@pytest.fixture
def uploaded(log_dir: Path, store: Path, tieredctl: Tieredctl) -> Path:
    assert tieredctl(*upload_words(log_dir, store), "--upload-bytes", "200", "--apply").exit_code == 0
    return store


def log_file(log_dir: Path, partition: int = 0, base: int = 0) -> Path:
    return log_dir / f"orders-{partition}" / f"{base:020d}.log"


def say_epochs(log_dir: Path, *entries: tuple[int, int], partition: int = 0) -> None:
    data = encode_leader_epoch_checkpoint([EpochEntry(*entry) for entry in entries])
    (log_dir / f"orders-{partition}" / "leader-epoch-checkpoint").write_bytes(data)


def events(store: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (store / EVENTS).iterdir()}


def restored_bytes(tieredctl: Tieredctl, store: Path, to: Path) -> bytes:
    outcome = tieredctl("wal", "restore", "--store", f"file:{store}", "--to", to)
    assert outcome.exit_code == 0, outcome.err
    return b"".join(file.read_bytes() for file in sorted(to.glob("orders-0/*.log")))


def flip_a_bit(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2 + 30] ^= 1
    log.write_bytes(data)


def flip_a_bit_of_an_offset(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)


def cut_in_half(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2 - 7])


def cut_between_batches(log: Path) -> None:
    log.write_bytes(b"".join(FIRST[:4]))


def lose_all(log: Path) -> None:
    log.write_bytes(b"")


LOSSES = (flip_a_bit, flip_a_bit_of_an_offset, cut_in_half, cut_between_batches, lose_all)


def test_what_a_log_lost_is_not_deleted_although_its_checkpoint_names_a_later_leader(
    log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    before, whole = events(uploaded), log_file(log_dir).read_bytes()
    checkpoints = (((0, 0), (1, 3)), ((0, 0), (1, 3), (7, 300)), ((7, 0), (0, 0)), ())
    for number, (lose, epochs) in enumerate(product(LOSSES, checkpoints)):
        log_file(log_dir).write_bytes(whole)
        lose(log_file(log_dir))
        say_epochs(log_dir, *epochs)

        outcome = tieredctl(*upload_words(log_dir, uploaded), "--apply", *CONFIRMED)

        case = (lose.__name__, epochs)
        assert (outcome.exit_code in (3, 4), "wal-log-behind" in outcome.err) == (True, True), case
        assert events(uploaded) == before, case
        assert restored_bytes(tieredctl, uploaded, tmp_path / f"to-{number}") == whole, case


def test_a_damaged_log_of_a_leader_that_wrote_nothing_yet_deletes_nothing(
    log_dir: Path, uploaded: Path, tieredctl: Tieredctl
) -> None:
    """Up to the damage, everything agrees with its checkpoint."""
    before, whole = events(uploaded), log_file(log_dir).read_bytes()
    for lose in (flip_a_bit, flip_a_bit_of_an_offset, cut_in_half):
        log_file(log_dir).write_bytes(whole)
        lose(log_file(log_dir))
        end = len([one for one in (0, 1, 2, 3) if b"".join(FIRST[: one + 1]) in log_file(log_dir).read_bytes()])
        say_epochs(log_dir, *((epoch, start) for epoch, start in ((0, 0), (1, 3)) if start < end), (7, end))

        outcome = tieredctl(*upload_words(log_dir, uploaded), "--apply", *CONFIRMED)

        assert "it may have lost them" in outcome.err, lose.__name__
        assert events(uploaded) == before, lose.__name__


@pytest.fixture
def later(tmp_path: Path, log_dir: Path) -> Path:
    """The log directory of a later leader that lacks offsets 4 and 5, and went on."""
    write_partition(tmp_path / "later", ORDERS[0], [*FIRST[:4], *(batch(one, epoch=2, size=90) for one in (4, 5, 6))])
    return tmp_path / "later"


def test_what_earlier_leaders_uploaded_is_deleted_only_when_confirmed(
    later: Path, uploaded: Path, tieredctl: Tieredctl
) -> None:
    before = events(uploaded)
    for words in ((), ("--yes",), ("--yes", "--cluster-id", "x"), ("--cluster-id", CLUSTER_ID)):
        outcome = tieredctl(*upload_words(later, uploaded), "--apply", *words)

        assert (outcome.exit_code, outcome.out, events(uploaded) == before) == (2, "", True), words


def test_a_plan_that_only_deletes_by_events_says_that_apply_makes_the_change(
    later: Path, log_dir: Path, store: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActiveSegmentsUpload, "_cut", lambda *_: None)  # as if it had been killed right before
    for one in (log_dir, later):
        assert tieredctl(*upload_words(one, store), "--apply", *CONFIRMED).exit_code == 0

    planned = tieredctl(*upload_words(later, store), "-o", "json")

    assert (planned.document()["summary"]["planned"], planned.document()["summary"]["deleted"]) == (0, 1)
    assert "--apply makes the change" in planned.err


WRITES_OF_A_LATER_LEADER = 9


@pytest.mark.parametrize("boundary", cut_at(WRITES_OF_A_LATER_LEADER))
def test_a_later_leaders_upload_killed_anywhere_leaves_nothing_unread_that_both_logs_have(
    boundary: int,
    later: Path,
    uploaded: Path,
    tmp_path: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = (*upload_words(later, uploaded), "--apply", *CONFIRMED)
    with monkeypatch.context() as patched, suppress(Killed):
        written = killed_after(patched, boundary if boundary < WRITES_OF_A_LATER_LEADER else None)
        assert tieredctl(*words).exit_code == 0
    assert len(written) == boundary
    (uploaded / ".tieredctl/lease.json").unlink(missing_ok=True)

    found = restored_bytes(tieredctl, uploaded, tmp_path / "between")
    assert found.startswith(b"".join(FIRST[:4]))
    assert tieredctl(*words).exit_code == 0

    assert restored_bytes(tieredctl, uploaded, tmp_path / "to") == log_file(later).read_bytes()
    assert tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", "full").exit_code == 0


def test_after_a_later_leader_announced_an_upload_an_earlier_one_adds_nothing(
    later: Path, log_dir: Path, store: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reader would take its events."""
    with monkeypatch.context() as patched, suppress(Killed):
        killed_after(patched, 5)
        tieredctl(*upload_words(later, store), "--apply")
    (store / ".tieredctl/lease.json").unlink(missing_ok=True)
    before = events(store)
    assert before

    outcome = tieredctl(*upload_words(log_dir, store), "--apply", "-o", "jsonl")

    assert (outcome.exit_code, outcome.lines()) == (3, [])
    assert events(store) == before


def test_only_what_readers_find_afterwards_counts_as_uploaded(log_dir: Path, store: Path) -> None:
    def lose_the_last_events(_outcome: UploadOutcome) -> None:
        max((store / EVENTS).iterdir()).unlink()

    logs = local_active_logs(read_local_replicas([log_dir]))
    upload = ActiveSegmentsUpload(FileStore(str(store)), logs, 1, clock_ms, 1 << 20, tell=lose_the_last_events)

    outcome = upload.run()

    assert (outcome.planned, outcome.done, outcome.failed, outcome.segments) == (1, 0, 1, [])
    assert [finding.code.value for finding in outcome.findings] == ["wal-upload-unfinished"]


def test_what_a_log_rolled_meanwhile_is_uploaded_too(tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    batches = [batch(offset) for offset in range(12)]
    write_partition(tmp_path / "before", ORDERS[0], batches[:6])
    write_partition(tmp_path / "after", ORDERS[0], batches[:8], batches[8:])
    assert tieredctl(*upload_words(tmp_path / "before", store), "--apply").exit_code == 0

    rows = tieredctl(*upload_words(tmp_path / "after", store), "--apply", "-o", "jsonl").lines()

    assert [(row["startOffset"], row["endOffset"]) for row in rows] == [(6, 11)]
    assert restored_bytes(tieredctl, store, tmp_path / "to") == b"".join(batches)


def test_a_gap_is_reported_and_filled_once_the_log_has_it(tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    batches = [batch(offset) for offset in range(12)]
    write_partition(tmp_path / "before", ORDERS[0], batches[:6])
    write_partition(tmp_path / "without", ORDERS[0], batches[8:], base=8)
    say_epochs(tmp_path / "without", (0, 0))
    write_partition(tmp_path / "with", ORDERS[0], batches[:8], batches[8:])
    assert tieredctl(*upload_words(tmp_path / "before", store), "--apply").exit_code == 0

    planned = tieredctl(*upload_words(tmp_path / "without", store))
    making = tieredctl(*upload_words(tmp_path / "without", store), "--apply")
    again = tieredctl(*upload_words(tmp_path / "without", store), "--apply", "-o", "jsonl")
    filling = tieredctl(*upload_words(tmp_path / "with", store), "--apply", "-o", "jsonl")

    for outcome in (planned, making):
        assert outcome.exit_code == 4
    assert again.lines() == []
    assert filling.exit_code == 0
    assert [(row["startOffset"], row["endOffset"]) for row in filling.lines()] == [(6, 7)]
    assert restored_bytes(tieredctl, store, tmp_path / "to") == b"".join(batches)


FALLING = [batch(0, epoch=1), batch(1, epoch=0)]
BACK = [batch(0), batch(2), batch(1)]


@pytest.mark.parametrize(("batches", "end"), [(FALLING, 0), (BACK, 2)])
def test_one_bad_partition_is_a_finding_and_the_others_are_uploaded(
    batches: list[bytes], end: int, log_dir: Path, store: Path, tieredctl: Tieredctl
) -> None:
    write_partition(log_dir, ORDERS[1], batches)
    write_partition(log_dir, ORDERS[2], FIRST)

    outcome = tieredctl(*upload_words(log_dir, store), "--upload-bytes", "100", "--apply", "-o", "jsonl")

    assert outcome.exit_code == 4
    assert "wal-log-damaged" in outcome.err
    ends = {row["partition"]: row["endOffset"] for row in outcome.lines()}
    assert ends == {0: 5, 1: end, 2: 5}


@pytest.mark.parametrize(
    ("leader_epoch", "verified", "again"), [(NO_LEADER, [], []), (1, ["wal-offset-gap"], [(2, 3)])]
)
def test_what_a_cleaner_deleted_is_not_missing_and_what_a_leader_deleted_is(
    leader_epoch: int,
    verified: list[str],
    again: list[tuple[int, int]],
    log_dir: Path,
    uploaded: Path,
    tieredctl: Tieredctl,
) -> None:
    wal_store = FileStore(str(uploaded))
    known = read_events(wal_store)
    deleted = [one for one in known.segments() if one.metadata.start_offset == 2]
    log = EventLog(wal_store, known.log.end_offsets, clock_ms)
    for state in (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED):
        log.append(segment_deletions(deleted, state, broker_id=9, leader_epoch=leader_epoch, clock_ms=clock_ms))

    verify = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "-o", "jsonl")
    rows = tieredctl(*upload_words(log_dir, uploaded), "--apply", "-o", "jsonl").lines()

    assert [row["code"] for row in verify.lines()] == verified
    assert [(row["startOffset"], row["endOffset"]) for row in rows] == again


def test_a_log_that_cannot_be_read_leaves_the_others_to_be_uploaded(
    log_dir: Path, store: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(log_dir, ORDERS[1], FIRST)
    real = Path.open

    def failing(path: Path, *given: Any, **named: Any) -> Any:
        if path == log_file(log_dir):
            raise OSError(EIO, "Input/output error")
        return real(path, *given, **named)

    monkeypatch.setattr(Path, "open", failing)

    outcome = tieredctl(*upload_words(log_dir, store), "--apply", "-o", "jsonl")

    assert outcome.exit_code == 5
    assert {row["partition"] for row in outcome.lines()} == {1}


def test_what_is_of_several_clusters_is_not_uploaded_together(
    log_dir: Path, store: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    other, metadata = tmp_path / "other", tmp_path / "events.jsonl"
    write_partition(other, ORDERS[1], FIRST)
    (other / "meta.properties").write_bytes(encode_meta_properties(MetaProperties(1, "A" * 22, 7, None)))
    write_events(other, *copied(0, 0, 2, {0: 0}))
    assert tieredctl("metadata", "export", metadata, "--log-dir", other).exit_code == 0

    for words in (("--log-dir", other), ("--export", metadata)):
        for more in ((), ("--apply",)):
            outcome = tieredctl(*upload_words(log_dir, store), *words, *more)

            assert (outcome.exit_code, outcome.out, list(store.iterdir())) == (2, "", []), words


def test_it_begins_where_neither_tier_has_the_log(tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    write_partition(tmp_path / "logs", ORDERS[0], [batch(0), batch(1)], [batch(2), batch(3)])
    later = write_partition(tmp_path / "logs-1", ORDERS[1], [batch(5), batch(6)], base=5)
    (later / "leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint([EpochEntry(0, 0)]))
    events = [copied(number, 0, 2, {0: 0}, partition=ORDERS[number]) for number in (0, 1)]
    write_events(tmp_path / "broker", *events[0], *events[1])
    metadata = tmp_path / "events.jsonl"
    assert tieredctl("metadata", "export", metadata, "--log-dir", tmp_path / "broker").exit_code == 0
    logs = ("--log-dir", tmp_path / "logs", "--log-dir", tmp_path / "logs-1")
    line = ("wal", "upload", "--store", f"file:{store}", "--all-segments", *logs)

    alone = tieredctl(*line, "-o", "json").document()
    both, said = tieredctl(*line, "-o", "json", "--export", metadata), tieredctl(*line, "--export", metadata)

    ranges = [(row["partition"], row["startOffset"], row["endOffset"]) for row in both.document()["items"]]
    assert [row["startOffset"] for row in alone["items"]] == [0, 5]
    assert ranges == [(0, 3, 3), (1, 5, 6)]
    assert both.exit_code == 4, said
