"""A snapshot and the log after it give the next snapshot: one that says something else is believed by no command,
although its CRC is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.formats.fuzzed_readers import sealed_batches
from tests.metadata_quorum_files import MetadataFolder
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.metadata_log import MetadataLog, snapshot_records
from tieredctl.kafka.snapshot_history import SnapshotHistory
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

CAPTURES = ("kafka-4.3.1", "kafka-3.9.1", "aiven-plain-4.3.1", "aiven-zstd-encrypted-4.3.1", "aiven-crash-4.3.1")
LIVE = "aiven-crash-4.3.1"


@pytest.fixture
def node(captures: Path, tmp_path: Path) -> Path:
    """A log directory; its log begins at 0, and it has eight snapshots."""
    folder = tmp_path / "data"
    shutil.copytree(captures / LIVE / "data/__cluster_metadata-0", folder / "__cluster_metadata-0")
    return folder / "__cluster_metadata-0"


def latest(folder: Path) -> Path:
    return MetadataLog.opened(folder).snapshots[-1].path


def topics_of(snapshot: Path) -> dict[str, bytes]:
    (file,) = (one for one in MetadataLog.opened(snapshot.parent).snapshots if one.path == snapshot)
    replay = MetadataReplay()
    replay.load_snapshot(snapshot_records(file), file.end_offset)
    return {topic.name: topic_id for topic_id, topic in replay.image.topics.items()}


def with_other_bytes(snapshot: Path, old: bytes, new: bytes) -> None:
    """A snapshot of the same size and name, with right CRCs."""
    data = snapshot.read_bytes()
    assert old in data
    assert len(old) == len(new)
    snapshot.write_bytes(sealed_batches(data.replace(old, new)))


def with_another_id(snapshot: Path) -> None:
    topic_id = next(iter(topics_of(snapshot).values()))
    with_other_bytes(snapshot, topic_id, bytes(reversed(topic_id)))


def with_another_name(snapshot: Path) -> None:
    name = next(iter(topics_of(snapshot))).encode()
    with_other_bytes(snapshot, name, name[:-1] + b"x")


ALTERED = {"a topic's id": with_another_id, "a topic's name": with_another_name}


def test_every_snapshot_that_a_node_wrote_is_confirmed_by_its_log(captures: Path) -> None:
    for capture in CAPTURES:
        log = MetadataLog.opened(captures / capture / "data/__cluster_metadata-0")

        history = SnapshotHistory.of(log)

        assert [one.path.name for one in history.confirmed] == [one.path.name for one in log.snapshots], capture
        assert history.contradictions == [], capture
        assert OfflineClusterPlace(log.folder).read().is_confirmed, capture


@pytest.mark.parametrize("what", ALTERED)
def test_a_snapshot_that_its_log_contradicts_is_believed_by_no_command(
    tieredctl: Tieredctl, captures: Path, node: Path, what: str
) -> None:
    altered = latest(node)
    ALTERED[what](altered)
    scanned = ("orphans", "scan", "--log-dir", captures / LIVE / "data", "--min-age", "0s")
    store = ("--store", f"file:{captures / LIVE / 'bucket'}", "--layout", "aiven")

    for path in (node, altered):
        verified = tieredctl("snapshot", "verify", path, "-o", "json")
        assert verified.exit_code == ExitCode.CORRUPTION, path
        assert [item["code"] for item in verified.document()["items"]] == ["kraft-snapshot-contradicted"], path
        assert [item["evidence"]["file"] for item in verified.document()["items"]] == [str(altered)], path
        refused = tieredctl(*scanned, *store, "--kraft-snapshot", path)
        assert (refused.exit_code, refused.out) == (ExitCode.CORRUPTION, ""), path
        with pytest.raises(TieredctlError) as raised:
            OfflineClusterPlace(path).read()
        assert raised.value.code is ErrorCode.UNDECODABLE, path


@pytest.mark.parametrize("what", ALTERED)
def test_an_earlier_snapshot_and_the_log_after_it_are_a_witness_too(node: Path, what: str) -> None:
    """As on nodes whose log was trimmed: offset 0 is gone."""
    log = MetadataLog.opened(node)
    first, second = log.snapshots[-2:]
    trimmed = MetadataFolder(node.parent / "trimmed", end_offset=first.end_offset)
    segment = trimmed.path / f"{first.end_offset:020}.log"
    segment.write_bytes(b"".join(bytes(batch.data) for batch in log.batches(first.end_offset)))
    for one in (first, second):
        shutil.copy(one.path, trimmed.path)
    sound = SnapshotHistory.of(MetadataLog.opened(trimmed.path))
    ALTERED[what](trimmed.path / second.path.name)

    altered = SnapshotHistory.of(MetadataLog.opened(trimmed.path))

    assert [one.path.name for one in sound.confirmed] == [second.path.name]
    assert [one.snapshot.path.name for one in altered.contradictions] == [second.path.name]
    assert [one.begun_with and one.begun_with.path.name for one in altered.contradictions] == [first.path.name]


def test_a_file_alone_is_one_witness_and_the_scan_says_so(
    tieredctl: Tieredctl, captures: Path, node: Path, tmp_path: Path
) -> None:
    alone = Path(shutil.copy(latest(node), tmp_path))
    data, bucket = captures / LIVE / "data", captures / LIVE / "bucket"
    where = ("--log-dir", data, "--store", f"file:{bucket}", "--layout", "aiven", "--min-age", "0s", "-o", "json")

    by_itself = tieredctl("orphans", "scan", *where, "--kraft-snapshot", alone)
    beside_its_log = tieredctl("orphans", "scan", *where, "--kraft-snapshot", latest(node))

    assert by_itself.document()["source"]["liveTopics"]["confirmedByLog"] is False
    assert f"Only {alone} says which topics are gone" in by_itself.err
    assert beside_its_log.document()["source"]["liveTopics"]["confirmedByLog"] is True
    assert "says which topics are gone" not in beside_its_log.err
    assert by_itself.document()["items"] == beside_its_log.document()["items"]


def test_a_topic_that_was_renamed_is_a_change(tieredctl: Tieredctl, node: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(latest(node), tmp_path))
    renamed = Path(shutil.copy(alone, tmp_path / "renamed.checkpoint"))
    name = next(iter(topics_of(alone)))
    data = alone.read_bytes()
    renamed.write_bytes(sealed_batches(data.replace(name.encode(), name[:-1].encode() + b"x")))

    compared = tieredctl("snapshot", "compare", alone, renamed, "-o", "jsonl")

    topics = [item for item in compared.lines() if item["kind"] == "topic"]
    assert [(item["before"]["name"], item["after"]["name"]) for item in topics] == [(name, name[:-1] + "x")]


def test_a_snapshot_that_is_damaged_or_contradicted_by_its_log_is_not_called_complete(
    tieredctl: Tieredctl, node: Path
) -> None:
    one = latest(node)
    whole = one.read_bytes()
    one.write_bytes(whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:])
    listed = [tieredctl("snapshot", "ls", path, "-o", "json") for path in (node, one)]
    one.write_bytes(whole)
    with_another_id(one)
    listed.append(tieredctl("snapshot", "ls", node, "-o", "json"))

    for outcome in listed:
        states = {Path(item["file"]).name: item["state"] for item in outcome.document()["items"]}
        assert (states.pop(one.name), outcome.exit_code) == ("damaged", ExitCode.CORRUPTION)
        assert set(states.values()) <= {"complete"}
