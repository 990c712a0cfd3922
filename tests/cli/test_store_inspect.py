"""`store inspect` on what real brokers left."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
import yaml

from tests.cli.command_line import Tieredctl
from tests.faults.aiven_storage_manager import AivenStorageManager
from tests.faults.segments_made import indexed_by_batch
from tieredctl.ports.layout import Part

FILES = {
    "committed-offsets": "rlmm-3.4.1/store/_rlmm_committed_offsets",
    "remote-log-snapshot": "rlmm-3.4.1/store/clicks-0/remote_log_snapshot",
    "log": "kafka-4.3.1/data/__remote_log_metadata-0/00000000000000000000.log",
    "offset-index": "kafka-4.3.1/data/__remote_log_metadata-0/00000000000000000000.index",
    "time-index": "kafka-4.3.1/data/__remote_log_metadata-0/00000000000000000000.timeindex",
    "transaction-index": "kafka-4.3.1/remote/kafka-tiered-storage/orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ/"
    "00000000000000000039-zYJ8cWbWS6Wrn_UH97CRKw.txnindex",
    "producer-snapshot": "kafka-4.3.1/data/__remote_log_metadata-0/00000000000000000398.snapshot",
    "leader-epoch-checkpoint": "kafka-4.3.1/data/orders7-0/leader-epoch-checkpoint",
    "checkpoint": "kafka-4.3.1/data/log-start-offset-checkpoint",
    "kraft-snapshot": "kafka-4.3.1/data/__cluster_metadata-0/00000000000000000107-0000000002.checkpoint",
    "meta-properties": "kafka-4.3.1/data/meta.properties",
    "quorum-state": "kafka-4.3.1/data/__cluster_metadata-0/quorum-state",
    "clean-shutdown": "kafka-3.9.1/data/.kafka_cleanshutdown",
    "partition-metadata": "kafka-4.3.1/data/orders7-0/partition.metadata",
    "diskless-object": "inkless/bucket/kafka-prod/diskless/j8sPwINeRtKiPiZlT01R0w",
}


def test_a_file_is_one_item_of_which_people_see_every_field_and_entry(captures: Path, tieredctl: Tieredctl) -> None:
    for kind, name in FILES.items():
        outcome = tieredctl("store", "inspect", captures / name, "-o", "json")
        document = outcome.document()
        (item,) = document["items"]
        assert (outcome.exit_code, outcome.err) == (0, ""), kind
        assert document["kind"] == "InspectedFiles"
        assert list(item) == ["path", "fileKind", "fields", "entries"]
        assert (item["path"], item["fileKind"]) == (str(captures / name), kind)
        assert document["summary"] == {"files": 1, "errors": []}
        for output in ("table", "wide"):
            facts, _, table = tieredctl("store", "inspect", captures / name, "-o", output).out.partition("\n\n")
            for field in ("path", "fileKind", *item["fields"]):
                assert f"\n{field}:" in f"\n{facts}", kind
            assert len(table.splitlines()) == (len(item["entries"]) + 1 if item["entries"] else 0), kind
        assert not item["entries"] or len(table.splitlines()[0].split()) >= len(item["entries"][0]), kind


def test_the_captured_committed_offsets_read_as_they_stand(captures: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("store", "inspect", captures / FILES["committed-offsets"])
    table = ["PARTITION  OFFSET", "        0     105", "        1      36", "        2     156", "        3      36"]
    assert outcome.out.splitlines()[-5:] == table


def test_several_files_in_every_format(captures: Path, tieredctl: Tieredctl) -> None:
    paths = [captures / FILES[kind] for kind in ("meta-properties", "checkpoint", "offset-index")]
    as_json = tieredctl("store", "inspect", *paths, "-o", "json").document()
    assert [item["path"] for item in as_json["items"]] == list(map(str, paths))
    assert tieredctl("store", "inspect", *paths, "-o", "jsonl").lines() == as_json["items"]
    assert yaml.safe_load(tieredctl("store", "inspect", *paths, "-o", "yaml").out) == as_json
    rows = list(csv.DictReader(tieredctl("store", "inspect", *paths, "-o", "csv").out.splitlines()))
    assert [json.loads(row["entries"]) for row in rows] == [item["entries"] for item in as_json["items"]]
    assert tieredctl("store", "inspect", *paths).out.count("fileKind:") == 3


def test_a_damaged_file_hides_none_of_the_others(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    damaged, wrong = tmp_path / "00000000000000000000.index", tmp_path / "partition.metadata"
    damaged.write_bytes(b"\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05")
    wrong.write_text("nonsense")
    paths = [captures / FILES["checkpoint"], damaged, tmp_path / "missing", captures / FILES["meta-properties"]]
    for output in ("table", "json", "jsonl"):
        outcome = tieredctl("store", "inspect", *paths, "-o", output)
        assert outcome.exit_code == 2  # the worst of both: a path that is wrong
        assert outcome.out.count("sizeInBytes") == 2, output
        sentences = [line for line in outcome.err.splitlines() if line.startswith("tieredctl: ")]
        assert len(sentences) == 2, output
        assert (str(damaged) in sentences[0], sentences[0].endswith("at byte 8.")) == (True, True), output
        assert tieredctl("store", "inspect", damaged, paths[0], "-o", output).exit_code == 4
    (error,) = tieredctl("store", "inspect", wrong, "-o", "json").document()["summary"]["errors"]
    assert (error["path"], error["code"]) == (str(wrong), "undecodable")
    assert tieredctl("store", "inspect", tmp_path)[:2] == (2, "")


def test_a_log_with_a_damaged_batch_is_shown_and_exits_4(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    data, log = bytearray((captures / FILES["log"]).read_bytes()), tmp_path / "00000000000000000000.log"
    data[295 + 70] ^= 1  # in the second batch
    log.write_bytes(data)
    for output in ("table", "json"):
        outcome = tieredctl("store", "inspect", log, "-o", output)
        whole = tieredctl("store", "inspect", captures / FILES["log"], "-o", output)
        assert (outcome.exit_code, "at byte 295." in outcome.err) == (4, True), output
        assert outcome.out.count("\n") >= whole.out.count("\n"), output


def test_the_kind_can_be_said(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes((captures / FILES["leader-epoch-checkpoint"]).read_bytes())
    unknown = tieredctl("store", "inspect", copy)
    assert unknown.exit_code == 2
    told = tieredctl("store", "inspect", copy, "--kind", "leader-epoch-checkpoint", "-o", "json").document()
    assert told["items"][0]["entries"] == [{"epoch": 0, "startOffset": 0}, {"epoch": 2, "startOffset": 60}]


def test_no_content_acts_upon_the_terminal(tmp_path: Path, tieredctl: Tieredctl) -> None:
    path = tmp_path / "meta.properties"
    path.write_bytes(b"version=1\ncluster.id=\x1b[31mred\nnode.id=1\n")
    for output in ("table", "wide", "json", "jsonl", "yaml", "csv"):
        outcome = tieredctl("store", "inspect", path, "-o", output)
        assert "red" in outcome.out
        assert (outcome.out + outcome.err).replace("\n", "").isprintable()


OBJECT = "00000000000000001000-AQIDBAUGBwgJCgsMDQ4PEA.log"
BROKERS = "00000000000000001000.log"


def test_every_encrypted_log_of_a_cluster(tieredctl: Tieredctl, captures: Path) -> None:
    logs = sorted((captures / "aiven-zstd-encrypted-4.3.1" / "bucket").rglob("*.log"))
    assert len(logs) > 100

    for log in logs[::8]:
        outcome = tieredctl("store", "inspect", log)
        assert (outcome.exit_code, outcome.out) == (5, ""), log


@pytest.mark.parametrize("compression", [False, True])
@pytest.mark.parametrize("encryption", [False, True])
def test_what_each_way_to_store_a_log_looks_like(
    tieredctl: Tieredctl, tmp_path: Path, compression: bool, encryption: bool
) -> None:
    """Its records are random, so that zstd keeps them as they are."""
    manager = AivenStorageManager(chunk_size=8_192, compression=compression, encryption=encryption)
    path = tmp_path / OBJECT
    path.write_bytes(manager.objects(indexed_by_batch().parts)[Part.LOG])

    assert tieredctl("store", "inspect", path).exit_code == (5 if compression or encryption else 0)


def test_a_broker_transforms_nothing(tieredctl: Tieredctl, tmp_path: Path) -> None:
    path = tmp_path / BROKERS
    path.write_bytes(os.urandom(9_000))

    assert tieredctl("store", "inspect", path).exit_code == 4


def test_a_log_with_one_batch_that_is_damaged_is_damaged(tieredctl: Tieredctl, tmp_path: Path) -> None:
    log = bytearray(indexed_by_batch().parts[Part.LOG])
    log[100] ^= 1
    path = tmp_path / OBJECT
    path.write_bytes(log)

    outcome = tieredctl("store", "inspect", path, "-o", "json")

    assert outcome.exit_code == 4
    assert [entry["isValid"] for entry in outcome.document()["items"][0]["entries"]].count(False) == 1
