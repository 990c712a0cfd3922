"""`recover indexes` of a topic, of what verify found, and of everything: one reading of the metadata, one run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES
from tieredctl.storage.file import FileStore

CLUSTER_ID = "preTTRqnQOeby9xOnCMfyA"
CONFIRMED = ("--apply", "--yes", "--cluster-id", CLUSTER_ID)
TOPIC, PARTITION = "orders7", "orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ"
REBUILT = ("index", "timeindex", "txnindex", "snapshot")


@pytest.fixture
def store(captures: Path, tmp_path: Path) -> Path:
    """One partition of 30 segments, each of which lacks all that can be rebuilt."""
    whole = captures / "kafka-4.3.1" / "remote" / "kafka-tiered-storage" / PARTITION
    shutil.copytree(whole, tmp_path / "store" / PARTITION)
    for suffix in REBUILT:
        for file in (tmp_path / "store" / PARTITION).glob(f"*.{suffix}"):
            file.unlink()
    return tmp_path / "store"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def verified(tieredctl: Tieredctl, store: Path, data: Path, to: Path) -> dict[str, Any]:
    words = ("--store", f"file:{store}", "--log-dir", data, "--topic", TOPIC, "--partition", "0", "--level", "full")
    outcome = tieredctl("verify", *words, "-o", "json")
    to.write_text(outcome.out)
    return outcome.document()


def test_a_chain_of_segments_without_any_index_is_mended_in_one_run(
    tieredctl: Tieredctl,
    captures: Path,
    store: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each segment's producer snapshot is made on that of the one before it, which is made in the same run."""
    whole = files(captures / "kafka-4.3.1" / "remote" / "kafka-tiered-storage" / PARTITION)
    where = ("--store", f"file:{store}", "--log-dir", data, "-o", "json")
    result = tmp_path / "verify.json"
    verified(tieredctl, store, data, result)
    readings: list[int] = []
    chunks = LogDirectories.chunks

    def counted(source: LogDirectories, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        readings.append(metadata_partition)
        return chunks(source, metadata_partition, from_offset)

    monkeypatch.setattr(LogDirectories, "chunks", counted)

    planned = tieredctl("recover", "indexes", "--verified", result, *where)
    read_twice, read_once = len(readings), len(set(readings))
    outcome = tieredctl("recover", "indexes", "--verified", result, *where, *CONFIRMED)
    again = tieredctl("recover", "indexes", "--topic", TOPIC, "--partition", "0", *where)

    summary = planned.document()["summary"]
    assert planned.exit_code == 3
    assert read_twice == 2 * read_once, "for the plan, and for what was deleted meanwhile"
    assert (summary["segments"], summary["segmentsInNeed"], summary["impossible"]) == (30, 30, 0)
    assert (outcome.exit_code, outcome.document()["summary"]["written"]) == (0, summary["toWrite"]), outcome.err
    assert len(readings) == 7 * read_once  # a plan; a plan, its application and a closing look; nothing to plan
    assert files(store / PARTITION).keys() == whole.keys()
    for name, content in files(store / PARTITION).items():
        assert sorted(content) == sorted(whole[name]), name  # of a snapshot's producers the order differs
    assert (again.exit_code, again.document()["items"]) == (0, [])


def test_every_way_to_name_segments_plans_the_same(
    tieredctl: Tieredctl, store: Path, data: Path, tmp_path: Path
) -> None:
    where = ("--store", f"file:{store}", "--log-dir", data, "-o", "json")
    result = tmp_path / "verify.json"
    verified(tieredctl, store, data, result)
    ways = {
        "a topic": ("--topic", TOPIC, "--partition", "0"),
        "a result": ("--verified", result),
        "ids": tuple({item["evidence"]["segmentId"] for item in json.loads(result.read_text())["items"]}),
    }

    items = {name: tieredctl("recover", "indexes", *words, *where).document()["items"] for name, words in ways.items()}

    assert len(items["a topic"]) >= 3 * 30
    for name, found in items.items():
        assert found == items["a topic"], name


def test_what_cannot_be_meant_is_refused(tieredctl: Tieredctl, store: Path, data: Path, tmp_path: Path) -> None:
    where = ("--store", f"file:{store}", "--log-dir", data)
    broken, foreign = tmp_path / "broken.json", tmp_path / "foreign.json"
    broken.write_text('{"kind": "RemoteObjects", "source": {}, "items": []}')
    foreign.write_text('{"kind": "Verification", "source": {"clusterId": "AAAAAAAAQAAAAAAAAAAAAQ"}, "items": []}')
    cases = {
        "nothing": (),
        "two ways": ("--all", "--topic", TOPIC),
        "no result": ("--verified", broken),
        "a result of another cluster": ("--verified", foreign),
        "a topic that is not there": ("--topic", "nowhere"),
    }
    before = files(store / PARTITION)

    for name, words in cases.items():
        outcome = tieredctl("recover", "indexes", *words, *where, *CONFIRMED)

        assert (outcome.exit_code, outcome.out) == (2, ""), name
    assert files(store / PARTITION) == before


def test_segments_that_are_no_longer_promised_are_passed_over(
    tieredctl: Tieredctl, store: Path, data: Path, tmp_path: Path
) -> None:
    gone = "AAAAAAAAQAAAAAAAAAAAAQ"
    result = tmp_path / "verify.json"
    items = [{"code": "object-missing", "evidence": {"segmentId": gone}}]
    result.write_text(json.dumps({"kind": "Verification", "source": {"clusterId": CLUSTER_ID}, "items": items}))

    words = ("--verified", result, "--store", f"file:{store}", "--log-dir", data, "-o", "json")
    outcome = tieredctl("recover", "indexes", *words)

    assert outcome.exit_code == 5
    assert [one["segmentId"] for one in outcome.document()["summary"]["passedOver"]] == [gone]


@pytest.mark.parametrize("code", [ErrorCode.OBJECT_ARCHIVED, ErrorCode.UNREADABLE])
def test_a_segment_whose_log_cannot_be_read_is_passed_over(
    tieredctl: Tieredctl, store: Path, data: Path, monkeypatch: pytest.MonkeyPatch, code: ErrorCode
) -> None:
    log = min(path.name for path in (store / PARTITION).glob("*.log"))
    stream = FileStore.stream

    def refusing(self: FileStore, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        if key.endswith(log):
            raise TieredctlError(code, f"{key} cannot be read.")
        return stream(self, key, start, chunk_size)

    monkeypatch.setattr(FileStore, "stream", refusing)
    selected = ("--topic", TOPIC, "--partition", "0", "--store", f"file:{store}", "--log-dir", data, "-o", "json")

    outcome = tieredctl("recover", "indexes", *selected)

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["segments"], len(summary["passedOver"])) == (5, 29, 1)


def test_what_was_passed_over_is_left_though_all_else_is_mended(
    tieredctl: Tieredctl, store: Path, data: Path, tmp_path: Path
) -> None:
    result = tmp_path / "verify.json"
    document = verified(tieredctl, store, data, result)
    gone = {"code": "object-missing", "evidence": {"segmentId": "AAAAAAAAQAAAAAAAAAAAAQ"}}
    result.write_text(json.dumps(document | {"items": [*document["items"], gone]}))

    where = ("--store", f"file:{store}", "--log-dir", data, "-o", "json")
    outcome = tieredctl("recover", "indexes", "--verified", result, *where, *CONFIRMED)

    summary = outcome.document()["summary"]
    assert (summary["written"], len(summary["passedOver"])) == (summary["toWrite"], 1)
    assert outcome.exit_code == 5


def test_a_result_of_a_verify_that_could_not_look_everywhere_leaves_it_unknown_whether_all_is_sound(
    tieredctl: Tieredctl, store: Path, data: Path, tmp_path: Path
) -> None:
    result = tmp_path / "verify.json"
    document = verified(tieredctl, store, data, result)
    where = ("--verified", result, "--store", f"file:{store}", "--log-dir", data)

    for items, is_complete, more, code in (
        ([], True, (), 0),
        ([], False, (), 5),
        (document["items"], False, (), 5),
        (document["items"], False, CONFIRMED, 5),
    ):
        result.write_text(json.dumps(document | {"items": items, "summary": {"complete": is_complete}}))

        outcome = tieredctl("recover", "indexes", *where, *more)

        assert outcome.exit_code == code, outcome.err
        assert "are intact" not in outcome.err
        assert ("could not look everywhere" in outcome.err) is not is_complete


def test_a_damaged_log_counts_as_before_though_another_segment_is_mended(
    tieredctl: Tieredctl, store: Path, data: Path
) -> None:
    log, *_ = sorted((store / PARTITION).glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1] + b"\1")
    words = ("--topic", TOPIC, "--partition", "0", "--store", f"file:{store}", "--log-dir", data, "-o", "json")

    planned = tieredctl("recover", "indexes", *words)
    outcome = tieredctl("recover", "indexes", *words, *CONFIRMED)

    assert outcome.document()["summary"]["written"] > 0
    assert (planned.exit_code, outcome.exit_code) == (4, 4)
