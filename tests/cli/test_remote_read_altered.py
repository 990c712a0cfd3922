"""`remote read` of bytes that are not what a broker wrote: they are written, reported, and never taken for sound."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, own_process
from tests.cli.test_remote_read import SEGMENT_ID, STEM, SUFFIXES
from tests.faults.aiven_storage_manager import AivenStorageManager, encoded_sizes, zstd
from tests.formats.decompression_bombs import zstd_run
from tests.formats.test_decompression_bombs import with_little_memory
from tieredctl.layouts.registry import layout_in, layout_named
from tieredctl.ops.remote.remote_read import StoredPart
from tieredctl.ports.layout import ORIGINAL_PARTS, ExplainedKey, Part
from tieredctl.storage.file import FileStore

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
def capture(captures: Path) -> Path:
    return captures / "kafka-4.3.1"


@pytest.fixture
def store(capture: Path, tmp_path: Path) -> Path:
    """A copy of the partition's folder."""
    folder = STEM.partition("/")[0]
    shutil.copytree(capture / "remote" / "kafka-tiered-storage" / folder, tmp_path / "store" / folder)
    return tmp_path / "store"


@pytest.fixture(params=[False, True], ids=["without-metadata", "with-metadata"])
def metadata(request: pytest.FixtureRequest, capture: Path) -> tuple[str | Path, ...]:
    return ("--log-dir", capture / "data") if request.param else ()


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


@pytest.mark.parametrize("part", SUFFIXES)
def test_altered_bytes_of_the_right_length_are_written_and_reported(
    store: Path, metadata: tuple[str | Path, ...], alter: Callable[[str], bytes], tieredctl: Tieredctl, part: str
) -> None:
    data, target = alter(part), store.parent / "part"
    words = ("--part", part, "--to", target, "--store", f"file:{store}", *metadata)

    outcome = tieredctl("remote", "read", SEGMENT_ID, *words)

    assert outcome.exit_code == 4
    assert f"{CODES[part]}: orders7-0 {SEGMENT_ID} {part}" in outcome.err
    assert "has the bytes as stored, not as the broker wrote them" in outcome.err
    assert target.read_bytes() == data


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


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("kafka-4.3.1/remote/kafka-tiered-storage", "local"),
        ("kafka-3.9.1/remote/kafka-tiered-storage", "local"),
        ("aiven-plain-4.3.1/bucket", "aiven"),
    ],
)
def test_every_part_that_brokers_wrote_is_sound(captures: Path, name: str, layout: str) -> None:
    store = FileStore(str(captures / name))
    chosen = layout_in(store, layout, {})
    explained = [found for stored in store.list() if (found := chosen.explain(stored.key))]
    segments = {one.segment_id: one for one in explained if one.part in (Part.LOG, Part.MANIFEST)}
    whole = [one for one in segments.values() if chosen.open_segment(store, one).parts()]

    read = [
        StoredPart(store, chosen, segment, part).copy_to(BytesIO())
        for segment in whole
        for part in chosen.open_segment(store, segment).parts()
        if part in ORIGINAL_PARTS
    ]

    assert len(read) > 20
    assert [finding.message for one in read for finding in one.findings] == []


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
    assert "has no sound batch in its bytes 0 to " in outcome.err
    assert not target.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
