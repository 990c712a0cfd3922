"""The sources that need no broker, held to what every source has to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.metadata_logs import metadata_batches, write_log
from tests.metadata_plugin import EXPORT_OPTION, NAME, install_metadata_plugin
from tieredctl.errors import TieredctlError
from tieredctl.formats.checkpoints import CheckpointedOffset, encode_offset_checkpoint
from tieredctl.kafka.export_file import ExportFile
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource
from tieredctl.testing.metadata_sources import (
    EVENTS,
    FIRST,
    SECOND,
    MetadataSourceContract,
    records_of,
)
from tieredctl.wiring.places import MetadataPlace, PluginSource

CLUSTER_ID, TOPIC_ID, OTHER_TOPIC_ID = "5lgVbV_vRSmEjoqjPWDZrA", "ABEiM0RVZneImaq7zN3u_w", "Ex-aw3fEQIi3do0H9Y7cKQ"
CHECKPOINT = "replication-offset-checkpoint"


@dataclass
class MetadataOnDisk:
    """Two metadata partitions in one broker's log directory."""

    log_dir: Path
    cluster_id: str = CLUSTER_ID
    topic_id: str = TOPIC_ID
    partition_count: int | None = None
    is_followed: bool = True

    def __post_init__(self) -> None:
        self._ends = {FIRST: 0, SECOND: 0}
        for number in self._ends:
            write_log(self.log_dir, number, [])
            self.call_topic(self.topic_id, number)
        (self.log_dir / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={self.cluster_id}\n")
        rows = [CheckpointedOffset(METADATA_TOPIC, number, 0) for number in self._ends]
        (self.log_dir / CHECKPOINT).write_bytes(encode_offset_checkpoint(rows))

    def write(self, metadata_partition: int, values: Sequence[bytes]) -> None:
        """Into the last segment, two records a batch."""
        batches = metadata_batches(values, first_offset=self._ends[metadata_partition], records_per_batch=2)
        with self._segments(metadata_partition)[-1].open("ab") as file:
            file.write(b"".join(batches))
        self._ends[metadata_partition] += len(values)

    def roll(self, metadata_partition: int) -> None:
        """Begins another segment."""
        write_log(self.log_dir, metadata_partition, [], first_offset=self._ends[metadata_partition])

    def delete_first_segment(self, metadata_partition: int) -> None:
        self._segments(metadata_partition)[0].unlink()

    def call_topic(self, topic_id: str, metadata_partition: int) -> None:
        file = self.log_dir / f"{METADATA_TOPIC}-{metadata_partition}" / "partition.metadata"
        file.write_text(f"version: 0\ntopic_id: {topic_id}\n")

    def open(self) -> MetadataSource:
        return LogDirectories([self.log_dir])

    def _segments(self, metadata_partition: int) -> list[Path]:
        return sorted((self.log_dir / f"{METADATA_TOPIC}-{metadata_partition}").glob("*.log"))


def codes_of(source: MetadataSource, metadata_partition: int) -> list[str]:
    """Of what is found while a partition is read."""
    return [finding.code for chunk in source.chunks(metadata_partition) for finding in chunk.findings]


@dataclass
class ExportedMetadata(MetadataOnDisk):
    """The same, exported whenever it is opened."""

    file: Path = Path()
    is_followed: bool = False

    def open(self) -> MetadataSource:
        export_metadata(EventStream(super().open()), self.file, force=True)
        return ExportFile(self.file)


@dataclass
class MetadataOfPlugin(ExportedMetadata):
    """The same export, read by a package that brings its own source."""

    def open(self) -> MetadataSource:
        super().open().close()
        plugin = PluginSource(NAME, str(self.file.parent), {EXPORT_OPTION: self.file.name})
        return MetadataPlace(plugin=plugin).open_source()


class TestLogDirectories(MetadataSourceContract):
    @pytest.fixture
    def metadata(self, tmp_path: Path) -> MetadataOnDisk:
        return MetadataOnDisk(tmp_path / "log")

    def test_segments_that_are_rolled_and_deleted_are_followed(self, metadata: MetadataOnDisk) -> None:
        metadata.write(FIRST, EVENTS[:4])
        source = metadata.open()
        records_of(source, FIRST)
        metadata.roll(FIRST)
        metadata.write(FIRST, EVENTS[4:6])
        metadata.delete_first_segment(FIRST)

        assert source.advance()
        assert [one.offset for one in records_of(source, FIRST)] == [4, 5]
        assert source.offset_range(FIRST) == (4, 6)
        assert [finding.code for finding in source.findings()] == ["metadata-truncated"]

    @pytest.mark.parametrize("from_offset", range(10))
    def test_segments_below_an_offset_are_not_read(
        self, metadata: MetadataOnDisk, from_offset: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for start in range(0, 8, 2):
            metadata.write(FIRST, EVENTS[start : start + 2])
            metadata.roll(FIRST)
        opened: list[int] = []
        path_open = Path.open

        def noted(path: Path, *how: Any) -> object:
            opened.append(int(path.stem))
            return path_open(path, *how)

        source = metadata.open()
        monkeypatch.setattr(Path, "open", noted)

        found = records_of(source, FIRST, from_offset)

        assert [one.offset for one in found] == list(range(from_offset, 8))
        assert opened == list(range(min(from_offset, 8) // 2 * 2, 10, 2))
        assert source.offset_range(FIRST) == (0, 8)

    def test_what_a_folder_without_a_segment_held_is_unknown(self, metadata: MetadataOnDisk, tmp_path: Path) -> None:
        metadata.write(FIRST, EVENTS[:2])
        replica = MetadataOnDisk(tmp_path / "replica")
        replica.write(FIRST, EVENTS[:2])
        metadata.delete_first_segment(FIRST)

        alone, beside = metadata.open(), LogDirectories([metadata.log_dir, replica.log_dir])

        assert codes_of(alone, FIRST) == ["metadata-cut-short"]
        assert codes_of(alone, SECOND) == []
        assert codes_of(beside, FIRST) == []
        assert [one.offset for one in records_of(beside, FIRST)] == [0, 1]

    def test_an_empty_log_that_no_checkpoint_of_its_broker_names_was_emptied(self, metadata: MetadataOnDisk) -> None:
        metadata.write(FIRST, EVENTS[:2])
        assert codes_of(metadata.open(), SECOND) == []

        (metadata.log_dir / CHECKPOINT).unlink()

        assert [codes_of(metadata.open(), number) for number in (FIRST, SECOND)] == [[], ["metadata-truncated"]]

    def test_a_copy_of_an_empty_log_alone_has_no_checkpoint_to_lack(self, tmp_path: Path) -> None:
        write_log(tmp_path, FIRST, [])

        assert codes_of(LogDirectories([tmp_path]), FIRST) == []

    def test_a_topic_that_was_deleted_and_made_again_is_another_one(self, metadata: MetadataOnDisk) -> None:
        source = metadata.open()
        for number in (FIRST, SECOND):
            metadata.call_topic(OTHER_TOPIC_ID, number)

        assert source.advance()
        assert source.metadata_topic_id == OTHER_TOPIC_ID

    def test_a_directory_that_cannot_be_read_now_leaves_it_as_it_was(self, metadata: MetadataOnDisk) -> None:
        metadata.write(FIRST, EVENTS[:3])
        source = metadata.open()
        assert len(records_of(source, FIRST)) == 3
        metadata.log_dir.rename(metadata.log_dir.with_name("elsewhere"))

        with pytest.raises(TieredctlError, match="There is no"):
            source.advance()

        assert source.offset_range(FIRST) == (0, 3)
        assert source.cluster_id == CLUSTER_ID


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
class TestExportFile(MetadataSourceContract):
    @pytest.fixture
    def metadata(self, tmp_path: Path, suffix: str) -> MetadataOnDisk:
        return ExportedMetadata(tmp_path / "log", file=tmp_path / f"export{suffix}")


class TestPluginSource(MetadataSourceContract):
    @pytest.fixture
    def metadata(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MetadataOnDisk:
        monkeypatch.syspath_prepend(install_metadata_plugin(tmp_path / "site-packages"))
        return MetadataOfPlugin(tmp_path / "log", file=tmp_path / "kept.jsonl")

    def test_it_is_the_plugins_own(self, metadata: MetadataOnDisk) -> None:
        assert metadata.open().describe()["kind"] == NAME
