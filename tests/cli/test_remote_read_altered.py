"""`remote read` of bytes that are not what a broker wrote: they are written, reported, and never taken for sound."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, own_process
from tests.cli.test_remote_read import SEGMENT_ID, STEM, SUFFIXES
from tests.faults.aiven_storage_manager import AivenStorageManager, encoded_sizes, zstd
from tests.formats.decompression_bombs import zstd_run
from tests.formats.test_decompression_bombs import with_little_memory
from tieredctl.layouts.registry import layout_named
from tieredctl.ports.layout import ORIGINAL_PARTS, ExplainedKey, Part

CODES = {
    "log": "batch-corrupt",
    "offset-index": "index-damaged",
    "time-index": "index-damaged",
    "producer-snapshot": "producer-snapshot-damaged",
    "leader-epoch": "leader-epoch-checkpoint-damaged",
    "transaction-index": "index-damaged",
}
CHUNK = 16 << 20


@pytest.fixture
def store(capture: Path, tmp_path: Path) -> Path:
    """A copy of the partition's folder."""
    folder = STEM.partition("/")[0]
    shutil.copytree(capture / "remote" / "kafka-tiered-storage" / folder, tmp_path / "store" / folder)
    return tmp_path / "store"


@pytest.fixture
def alter(store: Path) -> Callable[[str], bytes]:
    """Alters the first bytes of a part's object, which keeps its length, or fills an empty one: what it is then."""

    def altered(part: str) -> bytes:
        file = store / f"{STEM}.{SUFFIXES[part]}"
        data = bytearray(file.read_bytes() or bytes(range(16, 0, -1)))
        data[:20] = bytes(byte ^ 0xFF for byte in data[:20])
        file.write_bytes(data)
        return bytes(data)

    return altered


def test_altered_bytes_of_the_right_length_are_written_and_reported(
    store: Path, capture: Path, alter: Callable[[str], bytes], tieredctl: Tieredctl
) -> None:
    target = store.parent / "part"
    for part, code in CODES.items():
        data = alter(part)
        for metadata in ((), ("--log-dir", capture / "data")):
            words = ("--part", part, "--to", target, "--store", f"file:{store}", "--force", *metadata)

            outcome = tieredctl("remote", "read", SEGMENT_ID, *words)

            assert outcome.exit_code == 4, (part, metadata)
            assert f"{code}: orders7-0 {SEGMENT_ID} {part}" in outcome.err, (part, metadata)
            assert target.read_bytes() == data, (part, metadata)


def test_what_is_wrong_is_in_the_document_too(
    store: Path, alter: Callable[[str], bytes], tmp_path: Path, tieredctl: Tieredctl
) -> None:
    alter("log")

    outcome = tieredctl(
        "remote", "read", SEGMENT_ID, "--to", tmp_path / "part", "--store", f"file:{store}", "-o", "json"
    )

    (finding,) = outcome.document()["summary"]["findings"]
    assert (outcome.exit_code, finding["code"], finding["evidence"]["position"]) == (4, "batch-corrupt", 0)
    assert finding["evidence"]["key"] == f"{STEM}.log"


def test_altered_bytes_on_stdout_are_reported_on_stderr(store: Path) -> None:
    file = store / f"{STEM}.leader_epoch_checkpoint"
    file.write_text(file.read_text().replace("\n0 ", "\n0  "))

    where = ("--to", "-", "--store", f"file:{store}")
    outcome = own_process("remote", "read", SEGMENT_ID, "--part", "leader-epoch", *where)

    assert outcome.exit_code == 4
    assert "leader-epoch-checkpoint-damaged" in outcome.err


def test_another_segments_log_is_not_taken_for_this_ones(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    log = store / f"{STEM}.log"
    earlier = min(log.parent.glob("*.log"))
    log.write_bytes(earlier.read_bytes())

    outcome = tieredctl("remote", "read", SEGMENT_ID, "--to", tmp_path / "part", "--store", f"file:{store}")

    assert earlier.name < log.name
    assert outcome.exit_code == 4
    assert "records-outside-segment" in outcome.err


@pytest.fixture
def bomb(tmp_path: Path) -> Path:
    """A store of a segment whose log is some kilobytes of zstd that unfold to 2 GiB of zeros, as its manifest says."""
    segment = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 0, 0, SEGMENT_ID, Part.LOG)
    chunk, count = zstd_run(CHUNK), (2 << 30) // CHUNK - 1
    parts = dict.fromkeys(ORIGINAL_PARTS[:5], b"") | {Part.LOG: b"."}
    objects = AivenStorageManager(CHUNK, compression=True).objects(parts)
    manifest = json.loads(objects[Part.MANIFEST])
    sizes = b64encode(zstd(encoded_sizes([len(chunk)] * count))).decode()
    manifest["chunkIndex"] |= {"originalFileSize": count * CHUNK, "transformedChunks": sizes}
    objects |= {Part.LOG: chunk * count, Part.MANIFEST: json.dumps(manifest).encode()}
    for part, key in layout_named("aiven").promised_objects(segment).items():
        file = tmp_path / "store" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(objects[part])
    return tmp_path / "store"


def test_a_manifest_that_claims_what_no_log_can_be_is_not_believed(bomb: Path, tmp_path: Path) -> None:
    target = tmp_path / "part"
    words = ("remote", "read", SEGMENT_ID, "--to", target, "--store", f"file:{bomb}", "--layout", "aiven")

    outcome = with_little_memory(*words)

    assert outcome.exit_code == 4
    assert not target.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
