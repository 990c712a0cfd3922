"""`store inspect`: what any file of a broker or its remote log metadata manager holds, as documents."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from tests.refusals import refused_with
from tieredctl.errors import DecodeError, ExitCode, TieredctlError
from tieredctl.formats.compression import Codec
from tieredctl.formats.flat_file import FlatFile, StoredDeleteState, encode_flat_file
from tieredctl.formats.record_batches import Attributes, Record, encode_batch
from tieredctl.model.events import RemotePartitionDeleteState
from tieredctl.ops.inspection.inspect import FileKind, identify, inspect

SEGMENT_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
BATCH = encode_batch([Record(40, 1700000000000, b"k", b"v"), Record(42, 1700000000005, None, b"w")], producer_id=5)
CONTROL_WITHOUT_TYPE = encode_batch([Record(0, 0, None, None)], attributes=Attributes.CONTROL)
NEXT_BATCH = encode_batch([Record(43, 1700000000006, None, b"x")], codec=Codec.GZIP)
FLAT_FILE = encode_flat_file(
    FlatFile("t", SEGMENT_ID, 41, [StoredDeleteState(7, 5, RemotePartitionDeleteState.DELETE_PARTITION_MARKED)])
)
QUORUM_STATE = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},'
    b'{"voterId":3}],"data_version":0}'
)
QUORUM_STATE_OF_KIP_853 = (
    b'{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"H4WOGzBRXfXJ6D401Fk6oA","data_version":1}'
)

NAMES = {
    "00000000000000000042.log": FileKind.LOG,
    "00000000000000000042.log.deleted": FileKind.LOG,
    "00000000000000000042.index.swap": FileKind.OFFSET_INDEX,
    "00000000000000000042.timeindex": FileKind.TIME_INDEX,
    "00000000000000000042.txnindex": FileKind.TRANSACTION_INDEX,
    "00000000000000000042.snapshot": FileKind.PRODUCER_SNAPSHOT,
    f"00000000000000000000-{SEGMENT_ID}.log": FileKind.LOG,
    f"00000000000000000000-{SEGMENT_ID}.leader_epoch_checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
    f"0_{SEGMENT_ID}.index": FileKind.OFFSET_INDEX,
    f"0_{SEGMENT_ID}.txnindex.tmp": FileKind.TRANSACTION_INDEX,
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
    "recovery-point-offset-checkpoint": FileKind.CHECKPOINT,
    "log-start-offset-checkpoint": FileKind.CHECKPOINT,
    "replication-offset-checkpoint.tmp": FileKind.CHECKPOINT,
    "cleaner-offset-checkpoint": FileKind.CHECKPOINT,
    "00000000000000000100-0000000002.checkpoint": FileKind.KRAFT_SNAPSHOT,
    "00000000000000000100-0000000002-77.checkpoint.part": FileKind.KRAFT_SNAPSHOT,
    "bootstrap.checkpoint": FileKind.KRAFT_SNAPSHOT,
    "quorum-state": FileKind.QUORUM_STATE,
    "quorum-state.tmp": FileKind.QUORUM_STATE,
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    ".lock": FileKind.LOCK,
    "meta.properties": FileKind.META_PROPERTIES,
    "partition.metadata": FileKind.PARTITION_METADATA,
    "_rlmm_committed_offsets": FileKind.COMMITTED_OFFSETS,
    "remote_log_snapshot": FileKind.REMOTE_LOG_SNAPSHOT,
    f"00000000000000000000-{SEGMENT_ID}.rsm-manifest": None,
    "server.properties": None,
}
CONTENTS = {
    "a log": (BATCH, FileKind.LOG),
    "partition.metadata": (b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w", FileKind.PARTITION_METADATA),
    "meta.properties": (b"#\nversion=1\ncluster.id=x\nnode.id=1\n", FileKind.META_PROPERTIES),
    "an offset checkpoint": (b"0\n1\norders 0 5\n", FileKind.CHECKPOINT),
    "committed offsets as KIP-405 has them": (b"0 2022\n4 104\n", FileKind.COMMITTED_OFFSETS),
    "the state of a quorum": (QUORUM_STATE, FileKind.QUORUM_STATE),
    "a clean shutdown": (b'{"version":0,"brokerEpoch":79}', FileKind.CLEAN_SHUTDOWN),
    "a producer snapshot": (bytes.fromhex("000148674bc700000000"), FileKind.PRODUCER_SNAPSHOT),
    "a flat file": (FLAT_FILE, FileKind.FLAT_FILE),
    "two columns, which may be either checkpoint": (b"0\n1\n0 5\n", None),
    "an index": (bytes.fromhex("0000000500001000"), None),
    "nothing": (b"", None),
    "settings of a broker": (b"node.id=1\nprocess.roles=broker\n", None),
}


def test_the_kind_is_found_from_the_name_or_the_content_where_that_says_nothing() -> None:
    assert {name: identify(name, b"") for name in NAMES} == NAMES
    for name, (head, kind) in CONTENTS.items():
        assert identify("copy-of-a-file", head) is kind, name


def test_an_object_of_diskless_topics_is_told_by_its_name_and_its_content(captures: Path) -> None:
    """Its batches begin at offset 0, and its name is an id: either alone says nothing."""
    kraft = captures / "kafka-4.3.1/data/bootstrap.checkpoint"
    produced = encode_batch([Record(0, 1700000000000, b"k", b"v")], partition_leader_epoch=0)

    assert identify(SEGMENT_ID, produced) is FileKind.DISKLESS_OBJECT
    assert identify(SEGMENT_ID, BATCH) is FileKind.LOG
    assert identify("copy-of-a-file", produced) is FileKind.LOG
    assert identify(SEGMENT_ID, kraft.read_bytes()) is FileKind.KRAFT_SNAPSHOT
    assert identify(SEGMENT_ID, b"") is None


def test_a_damaged_batch_of_a_diskless_object_does_not_hide_the_others(captures: Path, tmp_path: Path) -> None:
    data = bytearray((captures / "inkless/bucket/kafka-prod/diskless/j8sPwINeRtKiPiZlT01R0w").read_bytes())
    data[600] ^= 1
    path = tmp_path / SEGMENT_ID
    path.write_bytes(data)

    document = inspect(path).document()

    assert document["fileKind"] == "diskless-object"
    assert [(one["position"], one["isValid"]) for one in document["entries"]] == [(0, True), (480, False), (790, True)]


def test_snapshots_are_found_from_their_content(captures: Path) -> None:
    kraft = captures / "kafka-4.3.1/data/bootstrap.checkpoint"
    remote = captures / "rlmm-3.4.1/store/clicks-0/remote_log_snapshot"

    assert identify("copy", kraft.read_bytes()) is FileKind.KRAFT_SNAPSHOT
    assert identify("copy", remote.read_bytes()) is FileKind.REMOTE_LOG_SNAPSHOT


CAPTURES = ["kafka-4.3.1", "kafka-3.9.1", "rlmm-3.4.1", "aiven-plain-4.3.1", "aiven-crash-4.3.1"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_captured_file_whose_name_tells_its_kind_is_shown(captures: Path, capture: str) -> None:
    shown = set()
    for path in (captures / capture).rglob("*"):
        kind = identify(path.name, b"")
        if not path.is_file() or kind is None:
            continue
        document = inspect(path).document()
        assert list(document) == ["path", "fileKind", "fields", "entries"]
        assert document["fileKind"] == kind.value
        assert document["fields"]["sizeInBytes"] == path.stat().st_size
        assert all(entry["isValid"] for entry in document["entries"] if kind is FileKind.LOG)
        assert json.loads(json.dumps(document)) == document
        shown.add(kind)

    assert len(shown) >= 6


def test_a_log_is_shown_batch_by_batch(captures: Path) -> None:
    folder = captures / "kafka-4.3.1/remote/kafka-tiered-storage"
    controls: list[object] = []
    for path in folder.glob("payments7-*/*.log"):
        file = inspect(path)
        batches = list(file.entries)
        assert file.fields["baseOffset"] == int(path.name[:20])
        assert file.fields["segmentId"] == path.stem[21:]
        position = 0
        for batch in batches:
            assert batch["position"] == position
            position += batch["size"]
            controls += batch.get("controlRecords", [])
        assert position == path.stat().st_size

    types = {record["controlType"] for record in controls if isinstance(record, dict)}
    assert types == {"ABORT", "COMMIT"}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_a_damaged_batch_is_an_entry_and_the_log_continues_after_it(tmp_path: Path) -> None:
    damaged = bytearray(BATCH + NEXT_BATCH)
    damaged[70] ^= 1

    first, second = inspect(write(tmp_path / "00000000000000000040.log", bytes(damaged))).entries
    whole, half_written = inspect(write(tmp_path / "0.log", BATCH + NEXT_BATCH[:-3])).entries

    assert (first["isValid"], first["baseOffset"], first["reason"]) == (False, 40, "CRC-32C does not match")
    assert (second["isValid"], second["baseOffset"], second["compressionType"]) == (True, 43, "gzip")
    assert whole["isValid"]
    assert (half_written["isValid"], half_written["position"]) == (False, len(BATCH))


def test_a_preallocated_log_ends_where_its_zeros_begin(tmp_path: Path) -> None:
    entries = list(inspect(write(tmp_path / "0.log", BATCH + bytes(5000))).entries)

    assert [entry["position"] for entry in entries] == [0]
    assert list(inspect(write(tmp_path / "1.log", bytes(5000))).entries) == []


def test_a_log_is_not_held_in_memory(tmp_path: Path) -> None:
    batch = encode_batch([Record(0, 1700000000000, None, bytes(1 << 20))])
    path = tmp_path / "00000000000000000000.log"
    with path.open("wb") as log:
        for _ in range(100):
            log.write(batch)

    tracemalloc.start()
    count = sum(1 for _ in inspect(path).entries)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 100
    assert peak < path.stat().st_size / 4


def test_indexes_count_from_the_base_offset_in_the_name(tmp_path: Path) -> None:
    data = bytes.fromhex("0000000500001000")

    in_cache = inspect(write(tmp_path / f"42_{SEGMENT_ID}.index", data))
    active = inspect(write(tmp_path / f"{42:020}.index", data + bytes(24)))
    renamed = inspect(write(tmp_path / "copy.index", data))

    assert in_cache.fields == {
        "baseOffset": 42,
        "segmentId": SEGMENT_ID,
        "entryCount": 1,
        "preallocatedBytes": 0,
        "sizeInBytes": 8,
    }
    assert (active.fields["entryCount"], active.fields["preallocatedBytes"]) == (1, 24)
    assert list(in_cache.entries) == [{"relativeOffset": 5, "position": 4096, "offset": 47}]
    assert list(renamed.entries) == [{"relativeOffset": 5, "position": 4096, "offset": None}]


def test_an_empty_remote_log_snapshot_is_sound(tmp_path: Path) -> None:
    file = inspect(write(tmp_path / "remote_log_snapshot", b""))

    assert (file.fields["entryCount"], list(file.entries)) == (0, [])


def test_remote_log_snapshot_of_3_4(captures: Path) -> None:
    file = inspect(captures / "rlmm-3.4.1/store/clicks-0/remote_log_snapshot")
    segment = next(file.entries)

    assert file.fields["metadataPartition"] == 0
    assert segment["dialect"] == "kafka"
    assert segment["customMetadata"] is None
    assert segment["segmentLeaderEpochs"][0].keys() == {"leaderEpoch", "offset"}


def test_a_flat_file_has_no_name_and_is_found_by_its_content(tmp_path: Path) -> None:
    file = inspect(write(tmp_path / "t-0", FLAT_FILE))

    assert (file.kind, file.fields["topic"], file.fields["topicId"]) == (FileKind.FLAT_FILE, "t", SEGMENT_ID)
    assert list(file.entries) == [
        {
            "type": "DeletePartitionState",
            "leaderEpoch": 7,
            "eventTimestampMs": 5,
            "state": "DELETE_PARTITION_MARKED",
        }
    ]


def test_the_state_of_a_quorum_with_its_voters(tmp_path: Path) -> None:
    file = inspect(write(tmp_path / "quorum-state", QUORUM_STATE))

    assert file.fields | {"sizeInBytes": 0} == {
        "version": 0,
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 2,
        "votedId": -1,
        "appliedOffset": 0,
        "sizeInBytes": 0,
    }
    assert list(file.entries) == [{"voterId": 1}, {"voterId": 3}]


def test_kip_853_keeps_voters_in_the_log_and_votes_for_a_directory(tmp_path: Path) -> None:
    file = inspect(write(tmp_path / "quorum-state", QUORUM_STATE_OF_KIP_853))

    assert list(file.fields) == ["version", "leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "sizeInBytes"]
    assert (file.fields["version"], file.fields["votedDirectoryId"]) == (1, "H4WOGzBRXfXJ6D401Fk6oA")
    assert list(file.entries) == []


def test_a_later_version_of_quorum_state_is_read_as_the_latest_known(tmp_path: Path) -> None:
    later = QUORUM_STATE_OF_KIP_853.replace(b'"data_version":1', b'"new":[],"data_version":2')

    assert inspect(write(tmp_path / "quorum-state", later)).fields["version"] == 1


def test_before_3_7_a_clean_shutdown_left_an_empty_file(tmp_path: Path) -> None:
    fields = inspect(write(tmp_path / ".kafka_cleanshutdown", b"")).fields

    assert fields == {"version": None, "brokerEpoch": None, "sizeInBytes": 0}


def test_a_kraft_snapshot_shows_records_by_name_and_others_raw(captures: Path) -> None:
    folder = captures / "kafka-4.3.1/data/__cluster_metadata-0"
    file = inspect(folder / "00000000000000000107-0000000002.checkpoint")
    entries = list(file.entries)

    assert (file.fields["endOffset"], file.fields["epoch"]) == (107, 2)
    assert file.fields["lastContainedLogTimestamp"] == 1795252456244
    assert entries[0]["controlType"] == "SNAPSHOT_HEADER"
    assert entries[1]["fields"] == {"name": "metadata.version", "featureLevel": 30}
    assert entries[-1]["controlType"] == "SNAPSHOT_FOOTER"
    topics = {entry["fields"]["name"] for entry in entries if entry.get("type") == "TopicRecord"}
    assert {"payments7", "__remote_log_metadata"} <= topics


def test_a_kind_that_is_said_wins_over_the_name(tmp_path: Path) -> None:
    path = write(tmp_path / "saved-checkpoint", b"0\n1\n0 5\n")

    with pytest.raises(TieredctlError, match="shows what kind of file it is") as refused:
        inspect(path)
    assert refused.value.exit_code is ExitCode.USAGE
    assert "leader-epoch-checkpoint" in refused.value.hint
    assert list(inspect(path, FileKind.LEADER_EPOCH_CHECKPOINT).entries) == [{"epoch": 0, "startOffset": 5}]
    assert list(inspect(path, FileKind.COMMITTED_OFFSETS).entries) == [{"partition": 0, "offset": 5}]


DAMAGED = [
    ("0.log", b"[2026-11-21] INFO started (kafka.server.KafkaServer)" * 9, "no record batch in it"),
    ("0.log", b"short", "no record batch in it"),
    ("0.log", CONTROL_WITHOUT_TYPE, "without a type, in a control record of the batch at byte 0"),
    ("0.index", b"short", "ends inside an entry of 8 bytes at byte 0"),
    ("0.snapshot", b"short", "5 bytes are too few"),
    ("leader-epoch-checkpoint", b"\xff", "not UTF-8 at byte 0"),
    ("meta.properties", b"version=9", "has version 9"),
    ("quorum-state", b"", "a line is not JSON"),
    ("quorum-state", b'{"leaderId":1,"leaderEpoch":2}', "quorum-state has data_version None"),
    ("quorum-state", QUORUM_STATE[:-2] + b"1}", "QuorumStateData.VotedDirectoryId is missing"),
    ("quorum-state", QUORUM_STATE.replace(b'"leaderEpoch":2', b'"leaderEpoch":2e9'), "which is not of type int32"),
    ("quorum-state", QUORUM_STATE.replace(b'"leaderId":1', b'"leaderId":3000000000'), "not of type int32"),
    ("quorum-state", QUORUM_STATE.replace(b'{"voterId":3}', b"3"), "Voter is not a JSON object"),
    (".kafka_cleanshutdown", b'{"version":0}', "a field is missing"),
    (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":true}', "True is not a whole number"),
    (".lock", b"\0", "it has 1 byte, but a broker's lock file is empty"),
    ("bootstrap.checkpoint", b"", "does not end with a footer"),
    ("bootstrap.checkpoint", BATCH, "does not begin with a header"),
]


def test_a_damaged_file_is_refused_in_a_sentence_that_names_it(tmp_path: Path) -> None:
    for name, data, sentence in DAMAGED:
        path = write(tmp_path / name, data)

        with pytest.raises(DecodeError, match=sentence) as refused:
            inspect(path)
        assert str(refused.value).startswith(f"{path} is not a valid "), (name, sentence)
        assert refused.value.exit_code is ExitCode.CORRUPTION, (name, sentence)


def test_damage_further_on_is_refused_when_the_entries_are_read(captures: Path, tmp_path: Path) -> None:
    data = (captures / "kafka-4.3.1/data/bootstrap.checkpoint").read_bytes()
    path = write(tmp_path / "bootstrap.checkpoint", data[:-1])

    entries = inspect(path).entries

    with pytest.raises(DecodeError, match=r"bootstrap\.checkpoint is not a valid kraft-snapshot file"):
        list(entries)


def test_a_file_that_is_not_there_and_a_folder(tmp_path: Path) -> None:
    for path, code in {tmp_path / "0.log": "path-missing", tmp_path: "usage"}.items():
        with refused_with(code, path):
            inspect(path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "0.log", BATCH)
    monkeypatch.setattr(Path, "open", refuse)

    with refused_with("path-forbidden"):
        inspect(path)
