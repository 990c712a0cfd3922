"""What real brokers stored through Aiven's plugin comes back as they wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome
from tieredctl.cli.main import run
from tieredctl.layouts.registry import layout_in
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.storage.file import FileStore

PLAIN, ENCRYPTED, CRASHED = "aiven-plain-4.3.1", "aiven-zstd-encrypted-4.3.1", "aiven-crash-4.3.1"
CAPTURES = (PLAIN, ENCRYPTED, CRASHED)
COPIED_FILES = {
    ".log": Part.LOG,
    ".index": Part.OFFSET_INDEX,
    ".timeindex": Part.TIME_INDEX,
    ".snapshot": Part.PRODUCER_SNAPSHOT,
    ".txnindex": Part.TRANSACTION_INDEX,
}
UNFINISHED = ("COPY_SEGMENT_STARTED", "DELETE_SEGMENT_STARTED")
SUFFIXES = {".log": "log", ".indexes": "indexes", ".rsm-manifest": "manifest"}

each_capture = pytest.mark.parametrize("name", CAPTURES)
each_root = pytest.mark.parametrize("root", ["bucket", "bucket/tiered"])


def described(capture: Path) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((capture / "capture.json").read_text())
    return described


def options(capture: Path) -> dict[str, str]:
    key = capture / "keys" / "private.pem"
    return {"private-key": str(key)} if key.exists() else {}


def layout_options(capture: Path) -> list[str]:
    return [word for name, value in options(capture).items() for word in ("--layout-option", f"{name}={value}")]


def tieredctl(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Outcome:
    exit_code = run([str(word) for word in words])
    said = capsys.readouterr()
    return Outcome(exit_code, said.out, said.err)


@pytest.fixture
def encrypted(captures: Path) -> Path:
    return captures / ENCRYPTED


def opened(capture: Path, root: str = "bucket") -> tuple[FileStore, Layout]:
    store = FileStore(str(capture / root))
    return store, layout_in(store, "auto", options(capture))


def explained(layout: Layout, key: str) -> ExplainedKey:
    found = layout.explain(key)
    assert found is not None
    return found


def written_by_the_broker(capture: Path, segment: Mapping[str, Any]) -> dict[Part, bytes]:
    files = {COPIED_FILES[file.suffix]: file.read_bytes() for file in (capture / segment["dir"]).iterdir()}
    assert {part: len(data) for part, data in files.items()} == {
        COPIED_FILES[f".{suffix}"]: size for suffix, size in segment["files"].items()
    }
    return files


def test_every_part_of_every_segment_comes_back_byte_for_byte(encrypted: Path) -> None:
    store, layout = opened(encrypted)
    segments = described(encrypted)["plaintext"]
    assert len(segments) == 23

    for segment in segments:
        reader = layout.open_segment(store, explained(layout, segment["object_key"]))
        files = written_by_the_broker(encrypted, segment)

        assert {part: reader.read(part) for part in files} == files
        assert {part: b"".join(reader.stream(part, 10_000)) for part in files} == files
        assert {part: reader.parts()[part] for part in files} == {part: len(data) for part, data in files.items()}
        assert set(reader.parts()) - set(files) == {Part.LEADER_EPOCH}


@pytest.mark.parametrize("start", [0, 1, 4_095, 4_096, 100_000])
@pytest.mark.parametrize("length", [1, 4_096, 10_000, 2_000_000])
def test_any_range_of_a_log_comes_back(encrypted: Path, start: int, length: int) -> None:
    store, layout = opened(encrypted)
    segment = max(described(encrypted)["plaintext"], key=lambda one: one["files"]["log"])
    log = written_by_the_broker(encrypted, segment)[Part.LOG]

    read = layout.open_segment(store, explained(layout, segment["object_key"])).read(Part.LOG, start, start + length)

    assert read == log[start : start + length]


@each_root
def test_the_command_writes_what_the_broker_wrote(
    encrypted: Path, root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for segment in described(encrypted)["plaintext"][::6]:
        segment_id = segment["object_key"].removesuffix(".log")[-22:]
        for part, data in written_by_the_broker(encrypted, segment).items():
            words = ("--part", part, "--to", tmp_path / "part", "--force", "--store", f"file:{encrypted / root}")

            outcome = tieredctl(capsys, "remote", "read", segment_id, *words, *layout_options(encrypted))

            assert outcome.exit_code == 0, outcome.err
            assert (tmp_path / "part").read_bytes() == data


@each_capture
def test_every_object_is_listed_with_its_part(captures: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = tieredctl(capsys, "remote", "ls", "--store", f"file:{captures / name / 'bucket'}", "-o", "jsonl")

    items, cluster = outcome.lines(), described(captures / name)
    assert {item["key"]: item["size"] for item in items} == cluster["bucket_listing"]
    for item in items:
        assert item["part"] == SUFFIXES[Path(item["key"]).suffix]
        owner = cluster["segments"][item["segmentId"]]
        assert (item["topicId"], item["partition"]) == (owner["topic_id"], owner["partition"])


@each_root
@each_capture
@pytest.mark.parametrize("level", ["listing", "headers", "full"])
def test_nothing_is_found_amiss_but_what_never_ended(
    captures: Path, name: str, root: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = captures / name
    words = ("--level", level, "--log-dir", capture / "data", "--store", f"file:{capture / root}", "-o", "json")

    outcome = tieredctl(capsys, "verify", *words, *layout_options(capture))

    document = outcome.document()
    by_state = described(capture)["classification_summary"]
    never_ended = sum(by_state.get(state, {"segments": 0})["segments"] for state in UNFINISHED)
    assert {item["code"] for item in document["items"]} <= {"copy-stuck", "delete-stuck"}
    assert len(document["items"]) == never_ended
    assert outcome.exit_code == 3
    assert document["summary"]["segments"] == by_state["COPY_SEGMENT_FINISHED"]["segments"]
    assert document["summary"]["objects"] == by_state["COPY_SEGMENT_FINISHED"]["objects"]


@each_capture
def test_kafkas_own_cache_of_indexes_holds_what_the_store_has(
    captures: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = captures / name
    words = ("store", "check", capture / "data", "--store", f"file:{capture / 'bucket'}")

    outcome = tieredctl(capsys, *words, *layout_options(capture), "-o", "json")

    assert not [item for item in outcome.document()["items"] if "remote-log-index-cache" in item["subject"]]
