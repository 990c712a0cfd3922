"""Commands on captured clusters whose segments are in HDFS (`hdfs_cluster`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.cli.crashed_bucket import broker_of_bucket, crashed_contents
from tests.cli.crashed_cluster import ENOUGH, LONG_AGO, NO_AGE, CrashedCluster, planned_keys, without_own
from tests.hdfs.stored_segments import Place, repacked, uploaded
from tests.rigs.hdfs import HdfsCluster
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.storage.registry import open_writable_store

LOCAL = "kafka-4.3.1"


@pytest.fixture(scope="module")
def in_files(captures: Path, hdfs_cluster: HdfsCluster) -> Place:
    """What Kafka tiered into LocalTieredStorage, each segment as Uber's manager would have written it."""
    remote = captures / LOCAL / "remote" / "kafka-tiered-storage"
    return uploaded(hdfs_cluster, "/user/kloak/base", repacked(remote))


def opened(place: Place) -> WritableObjectStore:
    return open_writable_store(place[1], dict(word.split("=", 1) for word in place[3::2]))


def in_folder(captures: Path) -> Place:
    return ("--store", f"file:{captures / LOCAL / 'remote' / 'kafka-tiered-storage'}", "--layout", "local")


def told(outcome: Outcome) -> list[tuple[Any, ...]]:
    """Findings by their segments: keys and sizes are another layout's."""
    names = ("topic", "partition", "segmentId")
    return sorted(
        (item["code"], *(item["evidence"].get(name) for name in names)) for item in outcome.document()["items"]
    )


def test_verification_comes_to_the_same_as_in_a_folder(captures: Path, in_files: Place) -> None:
    for level in ("listing", "headers", "full"):
        words = ("verify", "--level", level, "--log-dir", captures / LOCAL / "data", "-o", "json")

        in_hdfs, on_disk = this_process(*words, *in_files), this_process(*words, *in_folder(captures))

        assert (in_hdfs.exit_code, told(in_hdfs)) == (on_disk.exit_code, told(on_disk)), level
        assert in_hdfs.document()["summary"]["segments"] == on_disk.document()["summary"]["segments"]


def test_each_orphan_is_one_where_the_metadata_names_it(captures: Path, in_files: Place) -> None:
    words = ("orphans", "scan", "--log-dir", captures / LOCAL / "data", "--min-age", "0s", "-o", "jsonl")

    in_hdfs, on_disk = this_process(*words, *in_files), this_process(*words, *in_folder(captures))

    assert in_hdfs.exit_code == on_disk.exit_code
    assert segments(in_hdfs.lines()) == segments(on_disk.lines())


def test_what_no_event_names_is_unknown(captures: Path, in_files: Place, hdfs_cluster: HdfsCluster) -> None:
    key = "orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ/AQIDBAUGBwgJCgsMDQ4PEA"
    store = opened(in_files)
    stray = store.write(key, b"?")
    folder = in_files[1].partition("//cluster")[2]
    hdfs_cluster.ask("PUT", f"{folder}/{key}", "SETTIMES", modificationtime=str(LONG_AGO * 1_000))

    where = (*in_files, "--log-dir", str(captures / LOCAL / "data"))
    scanned = this_process("orphans", "scan", *where, "--min-age", "0s", "-o", "jsonl")
    store.delete([stray])

    assert [item["status"] for item in scanned.lines() if item["key"] == key] == ["unknown"]


def segments(items: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(item["segmentId"], item["status"]) for item in items}


def test_every_segment_is_listed_and_its_parts_are_those_that_the_broker_wrote(
    captures: Path, in_files: Place, tmp_path: Path
) -> None:
    listed = this_process("remote", "ls", *in_files, "-o", "jsonl")
    on_disk = this_process("remote", "ls", *in_folder(captures), "-o", "jsonl")
    segment_ids = sorted({item["segmentId"] for item in on_disk.lines()})

    assert (listed.exit_code, on_disk.exit_code) == (0, 0)
    assert sorted(item["segmentId"] for item in listed.lines()) == segment_ids
    metadata = ("--log-dir", captures / LOCAL / "data")
    for part in ("log", "time-index", "leader-epoch"):
        there, here = tmp_path / f"{part}-there", tmp_path / f"{part}-here"
        for to, place in ((there, in_files), (here, in_folder(captures))):
            read = this_process("remote", "read", segment_ids[0], "--part", part, "--to", to, *place, *metadata)
            assert read.exit_code == 0, read.err
        assert there.read_bytes() == here.read_bytes()


def test_lost_metadata_is_not_made_up_without_offsets(captures: Path, in_files: Place) -> None:
    recovered = this_process("recover", "metadata", *in_files, "--log-dir", captures / LOCAL / "data")

    assert recovered.exit_code == 2
    assert "do not name the offset" in recovered.err


@pytest.fixture(scope="module")
def debris(captures: Path) -> Mapping[str, bytes]:
    """What a cluster left that crashed, in the objects of Aiven's manager: its keys are the same on every backend."""
    return crashed_contents(captures)


@pytest.fixture(scope="module")
def crashed(
    captures: Path, hdfs_cluster: HdfsCluster, debris: Mapping[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> CrashedCluster:
    place = uploaded(hdfs_cluster, "/aiven", debris.items())
    folder = tmp_path_factory.mktemp("crashed")
    return CrashedCluster(this_process, broker_of_bucket(captures, debris), folder, place)


def test_aivens_objects_are_verified_there_as_in_a_folder(
    captures: Path, crashed: CrashedCluster, debris: Mapping[str, bytes], tmp_path: Path
) -> None:
    for key, data in debris.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    words = ("verify", "--level", "full", "--log-dir", crashed.log_dir, "-o", "json")

    in_hdfs, on_disk = this_process(*words, *crashed.store), this_process(*words, "--store", f"file:{tmp_path}")

    assert (in_hdfs.exit_code, told(in_hdfs)) == (on_disk.exit_code, told(on_disk))
    assert told(in_hdfs)


def test_orphans_are_removed_only_by_who_is_alone_and_come_back(
    crashed: CrashedCluster, debris: Mapping[str, bytes]
) -> None:
    planned = crashed.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    refused = crashed.apply()
    before = kept(crashed)
    applied = crashed.apply("--no-lease")
    left = kept(crashed)
    restored = crashed.restore("--no-lease")

    assert (planned.exit_code, refused.exit_code, applied.exit_code, restored.exit_code) == (0, 1, 0, 0)
    assert "cannot keep a lease" in refused.err
    assert left == {key: data for key, data in debris.items() if key not in planned_keys(crashed.plan_file)}
    assert before == kept(crashed) == debris


def kept(crashed: CrashedCluster) -> dict[str, bytes]:
    store = opened(crashed.store)
    with ThreadPoolExecutor(8) as threads:
        keys = [stored.key for stored in store.list()]
        return without_own(dict(zip(keys, threads.map(store.read, keys), strict=True)))
