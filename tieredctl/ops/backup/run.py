"""`backup run`: reads what a cluster can be made again from, and writes it as a set."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_text
from tieredctl.model.result_row import Column, Quantity, ResultRow, Size, Wide
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.backup.kept_secrets import sealed_secrets
from tieredctl.ops.backup.key_pairs import Recipient
from tieredctl.ops.backup.manifests import (
    CLUSTER_DOCUMENT,
    CLUSTER_FILE,
    EVENTS_FILE,
    GROUPS_FILE,
    OFFSETS_FILE,
    SECRETS_FILE,
    SETTINGS_FILE,
    EventRange,
    Manifest,
    SetFile,
)
from tieredctl.ops.backup.regrown_log import has_regrown
from tieredctl.ops.backup.sets import ClusterSets, KnownSet, damage, publish
from tieredctl.ops.cluster.broker_settings import METADATA_PREFIX, STORAGE_PREFIX
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.completeness import doubts
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.ports.cluster import Cluster, ConfigValue, ConsumerGroups, OffsetSpec
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.process.progress import note

_REMOTE_SETTINGS = ("remote.", "log.local.retention.", "log.retention.", "log.dir", "metadata.log.dir")
_MANAGERS_PREFIXES = (STORAGE_PREFIX, METADATA_PREFIX)
_BEGIN_AGAIN = (
    "See what else is damaged with `tieredctl backup verify`; `backup run --full` begins a new chain of sets."
)
_PASSING_RIGHTS = (ErrorCode.BROKER_REFUSED, ErrorCode.BROKER_UNREACHABLE, ErrorCode.UNKNOWN_TOPIC)


class LiveSource(Cluster, ConsumerGroups, Protocol):
    """A live cluster, its consumer groups too."""


@dataclass(frozen=True, slots=True)
class BackupRow(ResultRow):
    """A file of a set."""

    file: str
    bytes: Size[int]
    sha256: Wide[str]


@dataclass(frozen=True, slots=True)
class BackupSetRow(ResultRow):
    """A set, as `backup status` lists it."""

    set_: Annotated[int, Column("SET")]
    created_ms: Annotated[int, Column("CREATED", Quantity.MOMENT)]
    age_ms: Annotated[int, Column("AGE", Quantity.AGE, wide=True)]
    bytes: Size[int]
    events: int
    """New ones in this set."""
    base: Wide[int]
    unread: int


@dataclass(slots=True)
class Backup:
    """A set that was written, and what of the cluster could not be read."""

    manifest: Manifest
    findings: list[Finding] = field(default_factory=list)

    def rows(self) -> list[BackupRow]:
        """One for each file."""
        return [BackupRow(one.name, one.size, one.sha256) for one in self.manifest.files]

    def summary(self) -> Document:
        """The set."""
        return set_summary(self.manifest)


def set_summary(manifest: Manifest) -> Document:
    """What a set has, in numbers."""
    return {
        "set": manifest.number,
        "createdMs": manifest.created_ms,
        "bytes": sum(one.size for one in manifest.files),
        "events": events_in(manifest),
        "base": manifest.base,
        "unread": len(manifest.unread),
        "leftOut": manifest.to_give_again(is_opened=True),
        "encrypted": [one._asdict() for one in manifest.encrypted],
    }


def events_in(manifest: Manifest) -> int:
    """How many offsets of the metadata topic a set adds."""
    return sum(one.end_offset - one.start_offset for one in manifest.events.values())


@dataclass(slots=True)
class BackupRun:
    """One run. Raises TieredctlError `undecodable` where the newest set's manifest is damaged, unless the new one is to
    be full: then it begins a chain of its own, and the damage is a finding; and as `demand_named` and
    `demand_number` do."""

    sets: ClusterSets[WritableObjectStore]
    folder: Path
    """The folder for files on their way."""
    clock_ms: Callable[[], int]
    full: bool = False
    """Whether the set is to have all events, and need none before it."""
    dry_run: bool = False
    recipients: Sequence[Recipient] = ()
    """To whom secrets are encrypted; without one they are left out."""
    findings: list[Finding] = field(default_factory=list)
    number: int = field(init=False)
    """The number of the new set."""
    before: KnownSet | None = field(default=None, init=False)
    """The newest set; None for the first."""
    _unread: list[str] = field(default_factory=list)
    _hidden: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sets.demand_named()
        newest, first = self._newest()
        # Never one beyond a set that is made and left as the first meanwhile: that number is taken, and refused.
        self.number = (newest or first) + 1
        self.sets.demand_number(self.number)
        if not newest:
            return
        try:
            self.before = self.sets.read(newest)
        except TieredctlError as error:
            if error.code is not ErrorCode.UNDECODABLE:
                raise
            if not self.full:
                raise TieredctlError(error.code, error.message, hint=_BEGIN_AGAIN) from None
            self.findings.append(damage(self.sets.manifest_key(newest), error.message, newest))

    def _newest(self) -> tuple[int, int]:
        """The numbers of the newest set, and of that with which a prune had them begin; 0 for none. Looks again where a
        prune left a set that was made after the others had been listed."""
        first: int | None = None
        while True:
            newest, before = max(self.sets.numbers(), default=0), first
            first = self.sets.first()
            if newest or first == before:
                return newest, first or 0

    def run(self, state: ClusterState, events: MetadataSource, cluster: LiveSource) -> Backup:
        """Reads the rest, in an order in which nothing promises what is not there, and writes the set. Raises
        TieredctlError where it cannot be written."""
        created_ms = self.clock_ms()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created_ms / 1000))
        folder = f"sets/{self.number:08}-{stamp}-{token_hex(4)}"
        kept = state.without_secrets()
        files: list[tuple[str, bytes]] = [
            (CLUSTER_FILE, kept.checkpoint()),
            (CLUSTER_DOCUMENT, _json({"items": kept.document()})),
        ]
        if self.recipients:
            secrets = sealed_secrets(state, self.recipients, self.sets.cluster_id, self.number, folder)
            files.append((SECRETS_FILE, secrets))
        ranges, base, exported = self._events(events)
        files.append((EVENTS_FILE, exported))
        files.append((OFFSETS_FILE, _json(self._offsets(state, cluster))))
        with self._named("the committed offsets of consumer groups"):
            cluster.quorum()  # needs the right without which brokers leave out groups, and do not say so
            committed = [one._asdict() for one in cluster.committed_offsets()]
            files.append((GROUPS_FILE, _json({"items": committed})))
        with self._named("the brokers' settings"):
            settings = _settings(cluster.broker_configs())
            self._hidden = sorted({one["name"] for one in settings if one["value"] is None and one["isManagers"]})
            files.append((SETTINGS_FILE, _json({"items": settings})))
        manifest = Manifest(
            cluster_id=self.sets.cluster_id,
            number=self.number,
            folder=folder,
            created_ms=created_ms,
            previous=None if self.before is None else self.before.sha256,
            base=base,
            metadata_topic_id=events.metadata_topic_id,
            events=ranges,
            metadata_log_end=state.image.end_offset,
            unread=tuple(self._unread),
            left_out=(*kept.left_out, *(f"the value of {name} of brokers" for name in self._hidden)),
            files=tuple(SetFile.of(name, data) for name, data in files),
            encrypted=tuple(state.named_secrets()) if self.recipients else (),
        )
        if not self.dry_run:
            publish(self.sets, manifest, files)
        return Backup(manifest, self.findings)

    def _events(self, source: MetadataSource) -> tuple[Mapping[int, EventRange], int, bytes]:
        """What is new since the set before, or all where nothing fits that."""
        from_offsets = self._read_before(source)
        stream = EventStream(source, from_offsets=from_offsets)
        file = self.folder / EVENTS_FILE
        rows = export_metadata(stream, file, force=True, is_last=False).rows
        self.findings += [*doubts(stream.findings)]
        self._unread += [f"{one.subject}: {one.message}" for one in doubts(stream.findings)]
        ranges = {row["metadataPartition"]: EventRange(row["startOffset"], row["endOffset"]) for row in rows}
        base = self.number
        if from_offsets and self.before is not None:
            base = self.before.manifest.base
        return ranges, base, file.read_bytes()

    def _read_before(self, source: MetadataSource) -> Mapping[int, int]:
        before = None if self.before is None else self.before.manifest
        if self.full or before is None or before.metadata_topic_id != source.metadata_topic_id:
            return {}
        ends = {number: one.end_offset for number, one in before.events.items()}
        now = {number: source.offset_range(number) for number in source.metadata_partitions()}
        follows = ends.keys() == now.keys() and all(now[one].start <= ends[one] <= now[one].end for one in ends)
        return ends if follows and not has_regrown(source, self.sets, before) else {}

    def _offsets(self, state: ClusterState, cluster: Cluster) -> Document:
        """Where each partition begins and ends: of a partition without remote segments nothing else is known."""
        items: list[Document] = []
        names = sorted((topic.name, uuid_text(topic_id)) for topic_id, topic in state.image.topics.items())
        for done, (name, topic_id) in enumerate(names, 1):
            with self._named(f"where the logs of topic {name} begin and end"):
                # One by one: what it raises in the end takes none away.
                items.extend(_log_ends(cluster, name, topic_id))
            note("topics", done, len(names))
        return {"items": items}

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """What cannot be read for want of rights, or since it has gone, is named, and the rest is read."""
        try:
            yield
        except TieredctlError as error:
            if error.code not in _PASSING_RIGHTS:
                raise
            self._unread.append(f"{what}: {error.message}")
            evidence = {"what": what, "error": error.code.value}
            self.findings.append(Finding(FindingCode.BACKUP_INCOMPLETE, what, error.message.rstrip("."), evidence))


def _log_ends(cluster: Cluster, name: str, topic_id: str) -> Iterator[Document]:
    """Raises TieredctlError in the end where some partitions' leaders do not say both."""
    topic = cluster.topic(name)
    if topic.topic_id != topic_id:
        return  # made again since: the next set has it
    earliest = cluster.list_offsets(topic, OffsetSpec.EARLIEST)
    latest = cluster.list_offsets(topic, OffsetSpec.LATEST)
    lacking: list[int] = []
    for number in latest:
        first, end = earliest[number].offset, latest[number].offset
        if first is None or end is None:
            lacking.append(number)
        else:
            yield {"topic": name, "topicId": topic_id, "partition": number, "earliest": first, "latest": end}
    if lacking:
        which = f"{'partition' if len(lacking) == 1 else 'partitions'} {', '.join(map(str, lacking))}"
        message = f"Of {which} of topic {name}, leaders gave no offset."
        raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message)


def _settings(configs: Mapping[int, Mapping[str, ConfigValue]]) -> list[Document]:
    """What a broker needs to find the remote store again; brokers do not tell the values of secrets, nor of settings
    that they do not know, as those of the managers of remote storage and of its metadata: these have names alone."""
    items: list[Document] = []
    for broker, settings in sorted(configs.items()):
        managers = tuple(settings[one].value or "\0" for one in _MANAGERS_PREFIXES if one in settings)
        items += [
            {
                "brokerId": broker,
                "name": name,
                "value": value.value,
                "source": value.source,
                "isManagers": name.startswith(managers),
            }
            for name, value in sorted(settings.items())
            if name.startswith((*_REMOTE_SETTINGS, *managers))
        ]
    return items


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode("ascii")
