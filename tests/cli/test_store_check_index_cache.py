"""`store check` on the index cache: one finding for one thing that is broken."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.faults.cluster import captured
from tests.metadata_logs import write_events
from tests.rigs.lies import half, one_bit_flipped
from tieredctl.storage.file import FileStore
from tieredctl.storage.refusals import object_missing

CACHED_SUFFIXES = (".index", ".timeindex", ".txnindex")
SEGMENT = "00000000000000000039-zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment of orders7-0 in kafka-4.3.1, with an aborted transaction."""
SEGMENT_ID = SEGMENT.partition("-")[2]


@pytest.fixture
def remote(captures: Path) -> Path:
    return captures / "kafka-4.3.1/remote/kafka-tiered-storage"


@pytest.fixture
def cache(remote: Path, tmp_path: Path) -> Path:
    """A log directory with one segment's indexes in its cache, as a broker would have fetched them."""
    folder = tmp_path / "log-dir/remote-log-index-cache"
    folder.mkdir(parents=True)
    for suffix in CACHED_SUFFIXES:
        (source,) = remote.glob(f"orders7-0-*/{SEGMENT}{suffix}")
        shutil.copy(source, folder / f"39_{SEGMENT.partition('-')[2]}{suffix}")
    return folder


@pytest.fixture
def check_cache(captures: Path, tieredctl: Tieredctl) -> Callable[..., Outcome]:
    def check(cache: Path, *options: str | Path) -> Outcome:
        metadata = captures / "kafka-4.3.1/data"
        return tieredctl("store", "check", cache.parent, "--log-dir", metadata, *options, "-o", "json")

    return check


def gone(_: bytes) -> bytes:
    raise object_missing("file:/", SEGMENT)


def cached(cache: Path, suffix: str) -> Path:
    (path,) = cache.glob(f"*{suffix}")
    return path


def test_a_sound_cache_agrees_with_the_remote_store(
    cache: Path, remote: Path, check_cache: Callable[..., Outcome]
) -> None:
    for options in ((), ("--store", f"file:{remote}"), ("--store", f"file:{remote}", "--layout", "local")):
        outcome = check_cache(cache, *options)
        assert (outcome.exit_code, outcome.document()["items"]) == (0, [])
        assert outcome.document()["summary"]["indexCacheFiles"] == 3


@pytest.mark.parametrize("change", [half, one_bit_flipped, gone])
@pytest.mark.parametrize("suffix", CACHED_SUFFIXES)
def test_one_answer_that_differs_makes_no_cached_index_wrong(
    cache: Path,
    remote: Path,
    check_cache: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    change: Callable[[bytes], bytes],
) -> None:
    read, times = FileStore.read, count(1)

    def altered_once(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(store, key, start, end)
        return change(data) if key.endswith(suffix) and next(times) == 1 else data

    monkeypatch.setattr(FileStore, "read", altered_once)

    outcome = check_cache(cache, "--store", f"file:{remote}", "--layout", "local")

    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


def test_a_cached_index_that_cannot_be_its_segments(cache: Path, check_cache: Callable[..., Outcome]) -> None:
    for case, suffix, content, position in (
        ("cut", ".index", "0000000500000000 00", 8),
        ("beyond the log", ".index", "00000005 7fffffff", 0),
        ("beyond the segment", ".index", "00000001 00000000 00000500 00000001", 8),
        ("time beyond the segment", ".timeindex", "0000018bcfe56805 00000500", 0),
        ("padded", ".timeindex", "0000018bcfe56805 00000001 000000000000000000000000", 12),
        ("version", ".txnindex", "0001 0000000000000006 0000000000000027 000000000000002b 000000000000002c", 0),
        ("elsewhere", ".txnindex", "0000 0000000000000006 0000000000000027 0000000000002b00 000000000000002c", 0),
    ):
        path = cached(cache, suffix)
        whole = path.read_bytes()
        path.write_bytes(bytes.fromhex(content))
        finding = check_cache(cache).finding()
        assert (finding["code"], finding["subject"]) == ("store-disagrees", str(path)), case
        assert (finding["evidence"]["position"], finding["evidence"]["segmentId"]) == (position, SEGMENT_ID), case
        path.write_bytes(whole)


def test_an_offset_index_is_compared_with_a_log_of_unknown_size_but_for_that(
    captures: Path, cache: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    known = captured(captures / "kafka-4.3.1")
    (segment,) = (one for one in known.finished() if one.segment_id == SEGMENT.partition("-")[2])
    write_events(tmp_path / "logs", *known.with_start_changed(segment, segment_size_in_bytes=-1).events)

    cached(cache, ".index").write_bytes(bytes.fromhex("0000000300000010"))

    outcome = tieredctl("store", "check", cache.parent, "--log-dir", tmp_path / "logs", "-o", "json")

    assert "store-disagrees" not in outcome.out
    assert outcome.document()["summary"]["indexCacheFiles"] == 3


def test_a_plausible_index_that_is_not_the_remote_one(
    cache: Path, remote: Path, check_cache: Callable[..., Outcome]
) -> None:
    data = bytearray(cached(cache, ".timeindex").read_bytes())
    data[7] ^= 1
    cached(cache, ".timeindex").write_bytes(data)
    assert check_cache(cache).exit_code == 0
    finding = check_cache(cache, "--store", f"file:{remote}").finding()
    assert (finding["subject"], finding["evidence"]["position"]) == (str(cached(cache, ".timeindex")), 7)


def test_aborted_transactions_that_are_not_cached(
    cache: Path, remote: Path, check_cache: Callable[..., Outcome]
) -> None:
    cached(cache, ".txnindex").write_bytes(b"")
    assert check_cache(cache, "--store", f"file:{remote}").finding()["evidence"]["part"] == "transaction-index"


def test_an_index_that_the_remote_store_lacks(
    cache: Path, remote: Path, tmp_path: Path, check_cache: Callable[..., Outcome]
) -> None:
    copy = Path(shutil.copytree(remote, tmp_path / "remote"))
    next(copy.glob(f"*/{SEGMENT}.index")).unlink()
    assert check_cache(cache, "--store", f"file:{copy}").finding(4)["code"] == "object-missing"


def test_a_start_offset_that_the_name_has_wrong(cache: Path, check_cache: Callable[..., Outcome]) -> None:
    for suffix in CACHED_SUFFIXES:
        path = cached(cache, suffix)
        path.rename(path.with_name(path.name.replace("39_", "38_")))
    findings = check_cache(cache).document()["items"]
    assert [finding["code"] for finding in findings] == ["store-disagrees"] * 3
    assert "start offset 38, but the metadata 39" in findings[0]["message"]


def test_a_segment_that_nobody_announced(cache: Path, check_cache: Callable[..., Outcome]) -> None:
    for suffix in CACHED_SUFFIXES:
        cached(cache, suffix).rename(cache / f"39_AQIDBAUGBwgJCgsMDQ4PEA{suffix}")
    assert check_cache(cache).finding()["evidence"]["segmentId"] == "AQIDBAUGBwgJCgsMDQ4PEA"


def test_an_unknown_segment_is_not_a_proof_where_metadata_is_missing(
    captures: Path, cache: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for suffix in CACHED_SUFFIXES:
        cached(cache, suffix).rename(cache / f"39_AQIDBAUGBwgJCgsMDQ4PEA{suffix}")
    part = tmp_path / "part-of-the-metadata"
    shutil.copytree(captures / "kafka-4.3.1/data/__remote_log_metadata-1", part / "__remote_log_metadata-1")
    outcome = tieredctl("store", "check", cache.parent, "--log-dir", part, "-o", "json")
    missing, unknown = outcome.document()["items"]
    assert (outcome.exit_code, missing["code"]) == (5, "metadata-partition-missing")
    assert (unknown["code"], unknown["severity"]) == ("store-disagrees", "info")


def test_an_entry_that_is_not_whole(cache: Path, check_cache: Callable[..., Outcome]) -> None:
    cached(cache, ".txnindex").unlink()
    finding = check_cache(cache).finding()
    assert (finding["severity"], ".txnindex" in str(finding["message"])) == ("warning", True)


def test_leftovers_are_reported_as_passed_over(cache: Path, check_cache: Callable[..., Outcome]) -> None:
    """But one that is being fetched is no fault."""
    path = cached(cache, ".txnindex")
    fetched = path.rename(f"{path}.tmp")
    assert check_cache(cache).exit_code == 0
    fetched.rename(path)
    for suffix in (".tmp", ".deleted"):
        for one in list(cache.iterdir()):
            one.rename(f"{str(one).removesuffix('.tmp')}{suffix}")
        outcome = check_cache(cache)
        assert outcome.exit_code == 0, suffix
        assert [item["code"] for item in outcome.document()["items"]] == ["folder-passed-over"] * 3, suffix


def test_a_file_that_is_none_of_kafkas(cache: Path, check_cache: Callable[..., Outcome]) -> None:
    (cache / "notes.txt").write_text("hello")
    assert check_cache(cache).finding(0)["code"] == "folder-passed-over"


def test_two_brokers_with_different_bytes(captures: Path, cache: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    other = Path(shutil.copytree(cache.parent, tmp_path / "other"))
    data = bytearray(cached(cache, ".timeindex").read_bytes())
    data[7] ^= 1
    cached(cache, ".timeindex").write_bytes(data)
    metadata = captures / "kafka-4.3.1/data"
    outcome = tieredctl("store", "check", cache.parent, other, "--log-dir", metadata, "-o", "json")
    assert str(cached(cache, ".timeindex")) in str(outcome.finding()["message"])
