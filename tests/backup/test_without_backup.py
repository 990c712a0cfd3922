"""Restored without a backup set: what the keys of a bucket's objects bring back, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tieredctl.errors import ExitCode
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.kraft.image import TOPIC_RESOURCE, ClusterImage
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.model.ids import uuid_bytes, uuid_text
from tieredctl.ops.restore.node_files import RESTORED_MARK
from tieredctl.ports.metadata_source import METADATA_TOPIC

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
PARTITIONS = "4"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ORDERS, ORDERS_ID = "orders7", "Ex-aw3fEQIi3do0H9Y7cKQ"
META = "meta.properties"
ACCEPTED = ("--accept-unknown", "--yes")


@dataclass
class Bucket:
    """A remote store, and what restores it."""

    folder: Path
    tieredctl: Tieredctl

    def words(self, *nodes: str | Path) -> list[str]:
        given = [word for number, node in enumerate(nodes, 1) for word in ("--node", f"{number}={node}")]
        return ["--store", f"file:{self.folder}", *given]

    def run(self, verb: str, node: Path, *more: str) -> Outcome:
        source = ("--without-backup", "--metadata-partitions", PARTITIONS, "--cluster-id", CLUSTER_ID)
        return self.tieredctl("restore", verb, *source, *self.words(node), "-o", "json", *more)

    def partition(self, topic: str, number: int, topic_id: str | None = None) -> Path:
        (folder,) = self.folder.glob(f"{topic}-{number}-{topic_id or '*'}")
        return folder


@pytest.fixture
def bucket(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> Bucket:
    folder = shutil.copytree(captures / "kafka-4.3.1/remote/kafka-tiered-storage", tmp_path / "remote")
    return Bucket(folder, tieredctl)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def written_segments(tieredctl: Tieredctl, data: Path) -> dict[str, dict[str, Any]]:
    read = tieredctl("metadata", "segments", "--log-dir", data, "-o", "jsonl")
    return {one["segmentId"]: one for one in read.lines()}


def image_of(node: Path) -> ClusterImage:
    (snapshot,) = (node / "__cluster_metadata-0").glob("*.checkpoint")
    data, replay = snapshot.read_bytes(), MetadataReplay()
    replay.load_snapshot(read_kraft_snapshot([data], len(data)), int(snapshot.name[:20]))
    return replay.image


def test_topics_have_the_names_ids_and_partitions_of_their_keys_and_keep_everything(
    bucket: Bucket, captures: Path, tmp_path: Path
) -> None:
    before = contents(bucket.folder)

    done = bucket.run("apply", tmp_path / "node", *ACCEPTED)

    assert done.exit_code == ExitCode.INCOMPLETE, done.err
    finished = "COPY_SEGMENT_FINISHED"
    known = written_segments(bucket.tieredctl, captures / "kafka-4.3.1/data")
    written = written_segments(bucket.tieredctl, tmp_path / "node")
    assert {key for key, one in known.items() if one["state"] == finished} <= written.keys()
    for key, one in written.items():
        facts = ("startOffset", "endOffset", "segmentLeaderEpochs", "metadataPartition")
        assert key not in known or [one[fact] for fact in facts] == [known[key][fact] for fact in facts]
    image = image_of(tmp_path / "node")
    topics = {topic.name: (uuid_text(key), len(topic.partitions)) for key, topic in image.topics.items()}
    assert topics[ORDERS] == (ORDERS_ID, 3)
    assert topics["__remote_log_metadata"][1] == int(PARTITIONS)
    for topic in topics:
        assert image.configs[TOPIC_RESOURCE, topic]["retention.ms"] == "-1", topic
    assert contents(bucket.folder) == before


def test_all_that_no_key_says_is_named_and_no_time_of_a_set(bucket: Bucket, tmp_path: Path) -> None:
    planned = bucket.run("plan", tmp_path / "node")

    summary = planned.document()["summary"]
    assert planned.exit_code == ExitCode.INCOMPLETE
    for word in ("settings", "ACLs", "users", "groups", "quotas", "features", "partitions above", "replication"):
        assert any(word in one for one in summary["unread"]), word
    assert (planned.document()["source"]["set"], summary["createdMs"]) == (None, None)


def test_objects_whose_keys_name_no_topic_are_counted_as_unknown(bucket: Bucket, tmp_path: Path) -> None:
    known = bucket.run("plan", tmp_path / "node").document()["summary"]["unread"]
    (bucket.folder / "orders7-x-0").mkdir()
    for name in ("00000000000000000000.log", "00000000000000000000.index"):
        (bucket.folder / "orders7-x-0" / name).write_bytes(b"records")

    unread = bucket.run("plan", tmp_path / "node").document()["summary"]["unread"]

    (more,) = {*unread} - {*known}
    assert more.startswith("2 objects")


def test_nothing_is_written_before_the_unknown_is_accepted(bucket: Bucket, tmp_path: Path) -> None:
    for more in (("--yes",), ("--dry-run",)):
        refused = bucket.run("apply", tmp_path / "node", *more)

        assert (refused.exit_code, "--accept-unknown" in refused.err) == (ExitCode.INCOMPLETE, True), refused.err
        assert not (tmp_path / "node").exists()


Change = Callable[[Path], object]


def nothing(_folder: Path) -> None:
    """The bucket as it is."""


def recreated(folder: Path) -> None:
    shutil.copytree(folder / f"{ORDERS}-0-{ORDERS_ID}", folder / f"{ORDERS}-0-{OTHER_ID}")


def with_shared_id(folder: Path) -> None:
    shutil.copytree(folder / f"{ORDERS}-0-{ORDERS_ID}", folder / f"later7-0-{ORDERS_ID}")


def with_reserved_id(folder: Path) -> None:
    shutil.copytree(folder / f"{ORDERS}-0-{ORDERS_ID}", folder / f"later7-0-{OTHER_ID}")


def with_stray_number(folder: Path) -> None:
    shutil.copytree(folder / f"{ORDERS}-0-{ORDERS_ID}", folder / f"{ORDERS}-2000000000-{ORDERS_ID}")


def without_partition_1(folder: Path) -> None:
    shutil.rmtree(folder / f"{ORDERS}-1-{ORDERS_ID}")


def without_epochs_in_1(folder: Path) -> None:
    for one in (folder / f"{ORDERS}-1-{ORDERS_ID}").glob("*.leader_epoch_checkpoint"):
        one.unlink()


def emptied(folder: Path) -> None:
    for one in folder.iterdir():
        shutil.rmtree(one)


KEYS, PARTS, ID = "--without-backup", ("--metadata-partitions", PARTITIONS), ("--cluster-id", CLUSTER_ID)
USUAL = (KEYS, *PARTS, *ID)
REFUSED: dict[str, tuple[Change, tuple[str, ...], ExitCode, str]] = {
    "no source": (nothing, ID, ExitCode.USAGE, "--without-backup"),
    "no count": (nothing, (KEYS, *ID), ExitCode.USAGE, "--metadata-partitions"),
    "no cluster": (nothing, (KEYS, *PARTS), ExitCode.USAGE, "--cluster-id"),
    "a set, too": (nothing, (*USUAL, "--from", "file:sets"), ExitCode.USAGE, "--from"),
    "a set's number": (nothing, (*USUAL, "--set", "0"), ExitCode.USAGE, "--set"),
    "a set and a count": (nothing, ("--from", "file:sets", *PARTS), ExitCode.USAGE, "--metadata-partitions"),
    "a set and accepted": (nothing, ("--from", "file:sets", "--accept-unknown"), ExitCode.USAGE, "--accept-unknown"),
    "a set and an id": (nothing, ("--from", "file:sets", "--use-topic-id", "a=b"), ExitCode.USAGE, "--use-topic-id"),
    "a set and a controller": (nothing, ("--from", "file:sets", "--controller", "1"), ExitCode.USAGE, "--controller"),
    "another node": (nothing, (*USUAL, "--controller", "9"), ExitCode.USAGE, "--controller 9"),
    "only controllers": (nothing, (*USUAL, "--controller", "1"), ExitCode.USAGE, "broker"),
    "recreated": (recreated, USUAL, ExitCode.USAGE, f"--use-topic-id {ORDERS}="),
    "not an id": (nothing, (*USUAL, "--use-topic-id", f"{ORDERS}=x"), ExitCode.USAGE, "'x'"),
    "no such id": (nothing, (*USUAL, "--use-topic-id", f"{ORDERS}={OTHER_ID}"), ExitCode.USAGE, ORDERS_ID),
    "no such topic": (nothing, (*USUAL, "--topic", "nothing"), ExitCode.USAGE, "nothing"),
    "Kafka's own": (nothing, (*USUAL, "--topic", "__consumer_offsets"), ExitCode.USAGE, "__consumer_offsets"),
    "one id, two names": (with_shared_id, USUAL, ExitCode.CORRUPTION, ORDERS_ID),
    "stray number": (with_stray_number, USUAL, ExitCode.CORRUPTION, "2000000001"),
    "unknown start": (without_partition_1, USUAL, ExitCode.USAGE, f"--begin-at {ORDERS}:1="),
    "begun below": (without_epochs_in_1, (*USUAL, "--begin-at", f"{ORDERS}:1=9"), ExitCode.USAGE, "begins at 99"),
    "begun elsewhere": (nothing, (*USUAL, "--begin-at", "nothing:0=3"), ExitCode.USAGE, "nothing-0"),
    "begun known": (nothing, (*USUAL, "--begin-at", f"{ORDERS}:0=100000"), ExitCode.USAGE, "goes on at 90"),
    "begun Kafka's own": (nothing, (*USUAL, "--begin-at", f"{METADATA_TOPIC}:0=7"), ExitCode.USAGE, METADATA_TOPIC),
    "reserved id": (with_reserved_id, USUAL, ExitCode.CORRUPTION, f"later7 has the reserved id {OTHER_ID}"),
    "empty": (emptied, USUAL, ExitCode.USAGE, "no segment"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_sure_is_refused_and_no_node_is_written(
    case: str, bucket: Bucket, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    change, words, code, named = REFUSED[case]
    change(bucket.folder)
    node = tmp_path / "node"

    refused = tieredctl("restore", "apply", *words, *bucket.words(node), *ACCEPTED)

    assert (refused.exit_code, named in refused.err) == (code, True), refused.err
    assert not node.exists()


@pytest.mark.parametrize("cluster_id", ["", "a\nnode.id=2", "../other"])
def test_an_id_that_no_cluster_can_have_is_refused(
    cluster_id: str, bucket: Bucket, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    keys = ("--without-backup", "--metadata-partitions", "5", "--cluster-id", cluster_id)

    refused = tieredctl("restore", "apply", *keys, *bucket.words(tmp_path / "node"), *ACCEPTED)

    assert (refused.exit_code, "--cluster-id" in refused.err) == (ExitCode.USAGE, True), refused.err
    assert not (tmp_path / "node").exists()


def test_of_a_recreated_topic_the_chosen_id_comes_back_and_the_others_objects_stay(
    bucket: Bucket, tmp_path: Path
) -> None:
    recreated(bucket.folder)
    before = contents(bucket.folder)

    done = bucket.run("apply", tmp_path / "node", "--use-topic-id", f"{ORDERS}={ORDERS_ID}", *ACCEPTED)

    (found,) = [one for one in done.document()["summary"]["findings"] if one["code"] == "topic-not-in-cluster"]
    assert OTHER_ID in found["subject"], done.err
    assert uuid_bytes(OTHER_ID) not in image_of(tmp_path / "node").topics
    ids = {one["topicId"] for one in written_segments(bucket.tieredctl, tmp_path / "node").values()}
    assert ORDERS_ID in ids
    assert OTHER_ID not in ids
    assert contents(bucket.folder) == before


def test_partitions_that_no_key_shows_begin_where_the_user_says(bucket: Bucket, tmp_path: Path) -> None:
    without_partition_1(bucket.folder)
    given = ("--begin-at", f"{ORDERS}:1=700", "--begin-at", f"{ORDERS}:3=900")

    done = bucket.run("apply", tmp_path / "node", *given, *ACCEPTED)

    items = {one["partition"]: one for one in done.document()["items"] if one["topic"] == ORDERS}
    assert [(items[one]["origin"], items[one]["nextOffset"]) for one in (1, 3)] == [
        ("begin-at", 700),
        ("begin-at", 900),
    ], done.err
    assert (tmp_path / "node" / f"{ORDERS}-3" / f"{900:020}.log").exists()


@pytest.mark.parametrize("epochs", [[[2, 60]], [[0, 3], [2, 60]]], ids=["between segments", "within one"])
def test_segments_below_the_log_start_of_the_last_copy_are_not_given_to_brokers_which_would_delete_them(
    epochs: list[list[int]], bucket: Bucket, tmp_path: Path
) -> None:
    known = bucket.run("plan", tmp_path / "other").document()["items"]
    folder = bucket.partition(ORDERS, 0)
    last = max(folder.glob("*.leader_epoch_checkpoint"), key=lambda path: path.name)
    lines = [f"{epoch} {offset}" for epoch, offset in epochs]  # of 0 0, 2 60: the log start has moved
    last.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    start = epochs[0][1]

    done = bucket.run("apply", tmp_path / "node", *ACCEPTED)

    (item,) = [one for one in done.document()["items"] if (one["topic"], one["partition"]) == (ORDERS, 0)]
    found = {one["code"] for one in done.document()["summary"]["findings"]}
    assert (item["logStartOffset"], item["leaderEpochs"]) == (start, epochs), done.err
    of_partition = [
        one
        for one in written_segments(bucket.tieredctl, tmp_path / "node").values()
        if (one["topic"], one["partition"]) == (ORDERS, 0)
    ]
    assert min(one["endOffset"] for one in of_partition) >= start
    assert len(of_partition) == item["segments"] < known[0]["segments"]
    assert "log-start-above-store" in found


def test_offsets_of_segments_that_cannot_be_used_are_lost_wherever_they_are(bucket: Bucket, tmp_path: Path) -> None:
    folder = bucket.partition(ORDERS, 0)
    starts = sorted(int(path.name[:20]) for path in folder.glob("*.log"))
    for place in (0, 5, -1):
        for one in folder.glob(f"{starts[place]:020}-*.leader_epoch_checkpoint"):
            one.write_bytes(b"?")

    planned = bucket.run("plan", tmp_path / "node")
    without_epochs_in_1(bucket.folder)
    given = bucket.run("plan", tmp_path / "node", "--begin-at", f"{ORDERS}:1=300")

    (item,) = [one for one in planned.document()["items"] if (one["topic"], one["partition"]) == (ORDERS, 0)]
    assert (item["logStartOffset"], item["nextOffset"]) == (starts[1], starts[-1])
    assert item["lost"] == [[starts[0], starts[1] - 1], [starts[5], starts[6] - 1], [starts[-1], starts[-1]]]
    (other,) = [one for one in given.document()["items"] if (one["topic"], one["partition"]) == (ORDERS, 1)]
    assert (other["origin"], other["lost"]) == ("begin-at", [[0, 299]])


def test_of_encrypted_segments_no_key_is_needed(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    capture = captures / "aiven-zstd-encrypted-4.3.1"
    bucket = Bucket(capture / "bucket/tiered", tieredctl)

    done = bucket.run("apply", tmp_path / "node", "--layout", "aiven", *ACCEPTED)

    known = written_segments(tieredctl, capture / "data").values()
    copied = [one for one in known if one["state"] == "COPY_SEGMENT_FINISHED"]
    ends: dict[tuple[str, int], int] = {}
    for one in copied:
        place = one["topic"], one["partition"]
        ends[place] = max(ends.get(place, 0), one["endOffset"] + 1)
    assert done.exit_code == ExitCode.INCOMPLETE, done.err
    assert {(one["topic"], one["partition"]): one["nextOffset"] for one in done.document()["items"]} == ends
    written = written_segments(tieredctl, tmp_path / "node")
    superseded = [one for one in done.document()["summary"]["findings"] if "superseded" in one["message"]]
    assert len({one["segmentId"] for one in copied} - written.keys()) <= len(superseded)


def test_controllers_have_no_replica_and_all_machines_write_the_same(bucket: Bucket, tmp_path: Path) -> None:
    source = ("--without-backup", "--metadata-partitions", PARTITIONS, "--cluster-id", CLUSTER_ID, "--controller", "2")
    together = bucket.words(*(tmp_path / f"a{one}" for one in (1, 2, 3)))
    alone = ["--store", f"file:{bucket.folder}", "--node", f"1={tmp_path}/b1", "--node", "2", "--node", "3"]

    for words in (together, alone):
        done = bucket.tieredctl("restore", "apply", *source, *words, *ACCEPTED)
        assert done.exit_code == ExitCode.INCOMPLETE, done.err

    mark = (tmp_path / "b1" / RESTORED_MARK).read_text()
    shown = bucket.tieredctl("restore", "plan", *source, *alone)
    bucket.partition(ORDERS, 0).rename(bucket.folder / f"{ORDERS}-9-{ORDERS_ID}")
    changed = bucket.tieredctl("restore", "plan", *source, *alone)
    assert (mark[:12] in shown.out + shown.err, mark[:12] in changed.out + changed.err) == (True, False)
    assert contents(tmp_path / "a1") == contents(tmp_path / "b1")
    assert {path.name for path in (tmp_path / "a2").iterdir() if path.is_dir()} == {"__cluster_metadata-0"}
    replicas = [
        one["Replicas"] for topic in image_of(tmp_path / "a2").topics.values() for one in topic.partitions.values()
    ]
    assert all(sorted(one) == [1, 3] for one in replicas)
    assert {one[0] for one in replicas} == {1, 3}
