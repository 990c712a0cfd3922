"""Which cluster metadata is of, told by every source that can know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metadata_logs import copied, write_events
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.formats.metadata_export import ExportHeader, encode_header
from tieredctl.kafka.export_file import ExportFile
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.export import export_metadata

CLUSTER_ID, OTHER_CLUSTER_ID = "5lgVbV_vRSmEjoqjPWDZrA", "F5dZ1x0ZQiWMSNwsMmpQOA"


def log_dir(folder: Path, name: str, cluster_id: str | None = None) -> Path:
    made = folder / name
    write_events(made, *copied(1, 0, 9))
    if cluster_id is not None:
        meta = MetaProperties(KRAFT_VERSION, cluster_id, 1, None)
        (made / "meta.properties").write_bytes(encode_meta_properties(meta))
    return made


def test_a_log_directory_tells_its_cluster(tmp_path: Path) -> None:
    source = LogDirectories([log_dir(tmp_path, "data", CLUSTER_ID)])

    assert source.describe()["clusterId"] == CLUSTER_ID


@pytest.mark.parametrize("content", [None, b"", b"version=1\n", b"version=9\ncluster.id=x\n"])
def test_a_log_directory_without_a_usable_meta_properties_tells_none(tmp_path: Path, content: bytes | None) -> None:
    data = log_dir(tmp_path, "data")
    if content is not None:
        (data / "meta.properties").write_bytes(content)

    assert LogDirectories([data]).describe()["clusterId"] is None


def test_log_directories_of_one_cluster_may_lack_what_another_of_them_tells(tmp_path: Path) -> None:
    source = LogDirectories([log_dir(tmp_path, "copy"), log_dir(tmp_path, "data", CLUSTER_ID)])

    assert source.describe()["clusterId"] == CLUSTER_ID


def test_log_directories_of_different_clusters_are_refused(tmp_path: Path) -> None:
    one, other = log_dir(tmp_path, "one", CLUSTER_ID), log_dir(tmp_path, "other", OTHER_CLUSTER_ID)

    with pytest.raises(TieredctlError, match="different clusters") as refused:
        LogDirectories([one, other])

    assert refused.value.exit_code is ExitCode.USAGE
    assert all(told in refused.value.message for told in (str(one), CLUSTER_ID, str(other), OTHER_CLUSTER_ID))


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("cluster_id", [CLUSTER_ID, None])
def test_an_export_tells_the_cluster_of_its_source_and_so_does_an_export_of_it(
    tmp_path: Path, suffix: str, cluster_id: str | None
) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]

    export_metadata(EventStream(LogDirectories([log_dir(tmp_path, "data", cluster_id)])), files[0], force=False)
    export_metadata(EventStream(ExportFile(files[0])), files[1], force=False)

    assert [ExportFile(file).describe()["clusterId"] for file in files] == [cluster_id, cluster_id]


@pytest.mark.parametrize("source", [{"kind": "log-dir"}, {"kind": "log-dir", "clusterId": ["no", "id"]}])
def test_an_export_that_tells_no_cluster(tmp_path: Path, source: dict[str, object]) -> None:
    file = tmp_path / "old.jsonl"
    file.write_bytes(encode_header(ExportHeader(source, [], [])) + b"\n")

    assert ExportFile(file).describe()["clusterId"] is None
