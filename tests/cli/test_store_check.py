"""`store check`: clean where a real broker is sound; partition folders with one thing broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint

BROKERS = ["kafka-4.3.1", "kafka-3.9.1", "aiven-plain-4.3.1", "aiven-zstd-encrypted-4.3.1", "aiven-crash-4.3.1"]


def test_a_sound_broker_has_no_finding(captures: Path, tieredctl: Tieredctl) -> None:
    for capture in BROKERS:
        outcome = tieredctl("store", "check", captures / capture / "data", "-o", "json")
        document = outcome.document()
        assert (outcome.exit_code, document["items"]) == (0, []), capture
        cached = len(list((captures / capture / "data/remote-log-index-cache").glob("*")))
        assert document["summary"]["indexCacheFiles"] == cached, capture
        assert document["summary"]["partitions"] > 10, capture


def test_the_stores_of_3_4_agree_with_their_topic(captures: Path, tieredctl: Tieredctl) -> None:
    capture = captures / "rlmm-3.4.1"
    for directories in ([capture / "store", capture / "data"], [capture / "store", "--log-dir", capture / "data"]):
        outcome = tieredctl("store", "check", *directories, "-o", "json")
        assert (outcome.exit_code, outcome.document()["items"]) == (0, [])
        assert outcome.document()["summary"]["remoteLogSnapshots"] == 6
        assert outcome.document()["summary"]["committedOffsets"] == 1


@pytest.fixture
def log_dir(captures: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(captures / "kafka-4.3.1/data", tmp_path / "data"))


def check_folder(tieredctl: Tieredctl, *log_dirs: Path) -> Outcome:
    return tieredctl("store", "check", *log_dirs, "-o", "json")


def test_an_epoch_that_begins_behind_what_a_segment_has_of_it(log_dir: Path, tieredctl: Tieredctl) -> None:
    path = log_dir / "orders7-0/leader-epoch-checkpoint"
    path.write_bytes(encode_leader_epoch_checkpoint([EpochEntry(0, 0), EpochEntry(2, 62)]))
    finding = check_folder(tieredctl, log_dir).finding()
    assert (finding["code"], finding["subject"]) == ("leader-epoch-checkpoint-damaged", str(path))
    assert (finding["evidence"]["leaderEpoch"], finding["evidence"]["startOffset"]) == (2, 62)


def test_an_epoch_that_begins_inside_a_segment(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    folder = tmp_path / "log-dir/clicks-0"
    folder.mkdir(parents=True)
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: ryQjEMSWQ0KhrxlWXBmn_g")
    path, where = folder / "leader-epoch-checkpoint", ("--log-dir", captures / "rlmm-3.4.1/data")
    for start, subjects in ((288, [str(path)]), (289, []), (290, [str(path)])):
        path.write_bytes(encode_leader_epoch_checkpoint([EpochEntry(0, 0), EpochEntry(3, start)]))
        outcome = tieredctl("store", "check", tmp_path / "log-dir", *where, "-o", "json")
        assert [item["subject"] for item in outcome.document()["items"]] == subjects, start


def test_a_checkpoint_that_is_cut_short_to_the_log_start(log_dir: Path, tieredctl: Tieredctl) -> None:
    path = log_dir / "orders7-0/leader-epoch-checkpoint"
    path.write_bytes(encode_leader_epoch_checkpoint([EpochEntry(2, 80)]))
    assert check_folder(tieredctl, log_dir).exit_code == 0


def test_a_small_file_that_is_damaged(log_dir: Path, tieredctl: Tieredctl) -> None:
    for name, code in (
        ("orders7-0/leader-epoch-checkpoint", "leader-epoch-checkpoint-damaged"),
        ("orders7-0/partition.metadata", "store-disagrees"),
        ("log-start-offset-checkpoint", "store-disagrees"),
    ):
        whole = (log_dir / name).read_bytes()
        (log_dir / name).write_bytes(b"nonsense")
        finding = check_folder(tieredctl, log_dir).finding()
        assert (finding["code"], finding["subject"]) == (code, str(log_dir / name))
        (log_dir / name).write_bytes(whole)


def test_a_topic_id_of_another_topic(log_dir: Path, tieredctl: Tieredctl) -> None:
    path = log_dir / "orders7-0/partition.metadata"
    path.write_bytes((log_dir / "payments7-0/partition.metadata").read_bytes())
    finding = check_folder(tieredctl, log_dir).finding()
    assert (finding["code"], finding["subject"]) == ("store-disagrees", str(path))
    assert "is that of topic payments7" in str(finding["message"])


def test_a_topic_that_was_recreated_is_worth_knowing(log_dir: Path, tieredctl: Tieredctl) -> None:
    (log_dir / "orders7-0/partition.metadata").write_text("version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w")
    assert check_folder(tieredctl, log_dir).finding(0)["severity"] == "info"


def test_offsets_that_neither_log_has(log_dir: Path, tieredctl: Tieredctl) -> None:
    folder = log_dir / "orders7-0"
    (folder / "00000000000000000090.log").rename(folder / "00000000000000000095.log")
    finding = check_folder(tieredctl, log_dir).finding(4)
    assert (finding["code"], finding["evidence"]["offsets"]) == ("local-remote-gap", [90, 94])


def test_two_brokers_that_take_each_other_for_another(log_dir: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    other = tmp_path / "other"
    shutil.copytree(log_dir / "orders7-0", other / "orders7-0")
    (other / "orders7-0/partition.metadata").write_text("version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w")
    outcome = check_folder(tieredctl, log_dir, other)
    assert outcome.exit_code == 3
    assert [item["severity"] for item in outcome.document()["items"]] == ["info", "error"]


@pytest.mark.parametrize("start", [9_999, 10_001])
def test_two_brokers_of_which_one_has_an_epoch_begin_elsewhere(
    log_dir: Path, tmp_path: Path, tieredctl: Tieredctl, start: int
) -> None:
    other = tmp_path / "other"
    shutil.copytree(log_dir / "orders7-0", other / "orders7-0")
    for folder, begins in ((log_dir, 10_000), (other, start)):
        epochs = [EpochEntry(0, 0), EpochEntry(2, 60), EpochEntry(99, begins)]
        (folder / "orders7-0/leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint(epochs))
    finding = check_folder(tieredctl, log_dir, other).finding()
    assert (finding["code"], finding["evidence"]["startOffset"]) == ("leader-epoch-checkpoint-damaged", start)


def test_a_folder_that_is_being_deleted(log_dir: Path, tieredctl: Tieredctl) -> None:
    fate = log_dir / f"orders7-0.{'0' * 32}-delete"
    (log_dir / "orders7-0").rename(fate)
    finding = check_folder(tieredctl, log_dir).finding(0)
    assert (finding["code"], finding["subject"]) == ("folder-passed-over", str(fate))


def test_what_is_lacking_is_wrong_use(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    data = captures / "kafka-4.3.1/data"
    for words in (
        (tmp_path / "no",),
        (data / "meta.properties",),
        (tmp_path,),
        (captures / "rlmm-3.4.1/store",),
        (data, "--store", f"file:{tmp_path}/none"),
        (),
    ):
        outcome = tieredctl("store", "check", *words)
        assert (outcome.exit_code, outcome.out) == (2, ""), words


def test_a_store_is_not_compared_with_the_metadata_of_another_cluster(captures: Path, tieredctl: Tieredctl) -> None:
    own, other = captures / "kafka-4.3.1/data", captures / "kafka-3.9.1/data"

    outcome = tieredctl("store", "check", own, "--log-dir", other)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert f"{own} is of cluster preTTRqnQOeby9xOnCMfyA, not " in outcome.err
