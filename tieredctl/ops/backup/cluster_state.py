"""The cluster's own metadata for a backup: its latest snapshot and the log after it, as one without secrets,
and these apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName
from tieredctl.formats.kraft_log import KraftLogRecord, demanded_records
from tieredctl.formats.kraft_snapshot import encode_kraft_snapshot, read_kraft_snapshot
from tieredctl.formats.record_batches import read_batch_header
from tieredctl.kraft.entries import Entry, Kind, SettingKey, entries, is_secret_setting, shown
from tieredctl.kraft.image import METADATA_VERSION, ClusterImage
from tieredctl.kraft.image_records import image_controls, image_records, note_versions
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.ops.backup.manifests import NamedSecret
from tieredctl.ops.documents import Document
from tieredctl.ops.file_reading import file_chunks, regular_size
from tieredctl.ops.snapshots.fetching import fetch_snapshot, while_leaders_change
from tieredctl.ports.snapshot_source import MetadataLogSource


@dataclass(slots=True)
class ClusterState:
    """A cluster at an offset of its metadata log: `epoch` is the leader's of the last record, `versions` those in which
    the cluster writes its records."""

    image: ClusterImage
    epoch: int
    versions: Mapping[int, int]
    left_out: list[str] = field(default_factory=list)

    def checkpoint(self) -> bytes:
        """The snapshot."""
        batches = encode_kraft_snapshot(
            image_records(self.image, self.versions),
            image_controls(self.image),
            epoch=self.epoch,
            last_contained_ms=self.image.as_of_ms,
        )
        return b"".join(batches)

    def document(self) -> list[Document]:
        """All that it has, for people; the kinds and subjects of `snapshot inspect --cluster`."""
        return [{"kind": one.kind, "subject": one.subject, **shown(one, one.values)} for one in entries(self.image)]

    def named_secrets(self) -> list[NamedSecret]:
        """Its SCRAM keys, delegation tokens and sensitive settings, by name."""
        return [NamedSecret(one.kind, one.subject) for one in _secrets(self.image)]

    def secrets(self) -> ClusterState:
        """These alone."""
        image = ClusterImage(
            features={name: level for name, level in self.image.features.items() if name == METADATA_VERSION},
            credentials=dict(self.image.credentials),
            tokens=dict(self.image.tokens),
            configs=_settings(self.image, are_secret=True),
            end_offset=self.image.end_offset,
            as_of_ms=self.image.as_of_ms,
        )
        return ClusterState(image, self.epoch, self.versions)

    def without_secrets(self) -> ClusterState:
        """The same without them; they are named."""
        left_out = [
            *(one.sentence for one in self.named_secrets()),
            *(f"records of a later release: {name}" for name in sorted(self.image.unknown_records)),
        ]
        configs = _settings(self.image, are_secret=False)
        image = replace(self.image, credentials={}, tokens={}, configs=configs)
        return ClusterState(image, self.epoch, self.versions, left_out)

    def with_secrets(self, secrets: ClusterState) -> ClusterState:
        """The same with those of another."""
        configs = {resource: dict(settings) for resource, settings in self.image.configs.items()}
        for resource, settings in _settings(secrets.image, are_secret=True).items():
            configs.setdefault(resource, {}).update(settings)
        image = replace(self.image, credentials=secrets.image.credentials, tokens=secrets.image.tokens, configs=configs)
        versions = {
            kind: max(some.get(kind, 0) for some in (self.versions, secrets.versions))
            for kind in {*self.versions, *secrets.versions}
        }
        return ClusterState(image, self.epoch, versions, self.left_out)


def _secrets(image: ClusterImage) -> Iterator[Entry]:
    """By kind, in the order in which they are named."""
    for kind in (Kind.CREDENTIAL, Kind.TOKEN, Kind.CONFIG):
        for one in entries(image):
            if one.kind is kind and (kind is not Kind.CONFIG or is_secret_setting(one.key)):
                yield one


def _settings(image: ClusterImage, *, are_secret: bool) -> dict[tuple[int, str], dict[str, str]]:
    """By resource, those that are sensitive, or the others."""
    configs = {
        (kind, name): {
            setting: value
            for setting, value in settings.items()
            if is_secret_setting(SettingKey(kind, name, setting)) is are_secret
        }
        for (kind, name), settings in image.configs.items()
    }
    return {resource: settings for resource, settings in configs.items() if settings}


def fetch_cluster_state(source: MetadataLogSource, folder: Path) -> ClusterState:
    """The cluster as of now, by the leader of its metadata quorum. `folder` is for the snapshot on its way. Raises
    TieredctlError as the source does, `undecodable` where a record contradicts those before it, and
    `broker-unreachable` where leaders change all the time."""
    return while_leaders_change(lambda: _fetched(source, folder, source.leader().latest_snapshot))


def _fetched(source: MetadataLogSource, folder: Path, snapshot: KraftSnapshotName | None) -> ClusterState:
    replay, versions, epoch = MetadataReplay(), dict[int, int](), 0
    if snapshot is not None:
        file = Path(fetch_snapshot(source, folder, snapshot, force=True, is_last=False).file)
        replay.load_snapshot(note_versions(_records_of(file), versions), snapshot.end_offset)
        file.unlink()  # it has secrets, which a run that is killed would leave
        epoch = snapshot.epoch
    for batch in source.log_after(snapshot):
        header = read_batch_header(batch, 0, len(batch))
        epoch = header.partition_leader_epoch
        replay.load_log(note_versions(demanded_records(0, header, batch), versions))
    return _demanded(replay.image, epoch, versions)


def read_cluster_state(data: bytes, end_offset: int) -> ClusterState:
    """The state that `ClusterState.checkpoint` wrote. Raises DecodeError."""
    replay, versions = MetadataReplay(), dict[int, int]()
    records = read_kraft_snapshot([data], len(data))
    first = next(records)
    replay.load_snapshot(note_versions(chain([first], records), versions), end_offset)
    return _demanded(replay.image, first.epoch, versions)


def _demanded(image: ClusterImage, epoch: int, versions: Mapping[int, int]) -> ClusterState:
    if image.refused:
        first = image.refused[0]
        message = f"The metadata log contradicts itself at {first.offset}: {first.type_name}, {first.reason}."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="See `tieredctl snapshot verify`.")
    return ClusterState(image, epoch, versions)


def _records_of(file: Path) -> Iterator[KraftLogRecord]:
    size = regular_size(file)
    return read_kraft_snapshot(file_chunks(file, size), size)
