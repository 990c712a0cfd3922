"""`tieredctl snapshot inspect --cluster`: the cluster as of a snapshot, or of the end of the log after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tieredctl.cli.outcome import finish
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.result_listing import result_listing
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kraft.difference import in_words
from tieredctl.kraft.entries import Kind, entries, shown
from tieredctl.kraft.image import ClusterImage
from tieredctl.model.counted import counted
from tieredctl.model.result_row import ResultRow
from tieredctl.model.tolerance import Tolerance
from tieredctl.ops.documents import Document
from tieredctl.wiring.offline_cluster import OfflineClusterPlace


@dataclass(frozen=True, slots=True)
class _EntryRow(ResultRow):
    """A thing that a cluster has; no secret is among its values."""

    kind: Kind
    subject: str
    values: Mapping[str, Any]


def show_cluster(paths: Sequence[Path], output: OutputFormat, *, quiet: bool, tolerance: Tolerance) -> ExitCode:
    """Shows one item for each thing that the cluster has. Raises TieredctlError where the one path cannot be read."""
    if len(paths) != 1:
        raise TieredctlError(ErrorCode.USAGE, "--cluster is for one snapshot or folder.")
    cluster = OfflineClusterPlace(paths[0]).read()
    listing = result_listing(
        *("MetadataImage", cluster.describe(), _EntryRow, _rows(cluster.image), _summary(cluster.image)),
        values=lambda item: in_words(item["values"]),
    )
    sentence = f"The cluster as of offset {cluster.image.end_offset}: {counted(len(cluster.topic_ids), 'topic')}."
    return finish(listing, output, list(cluster.findings()), quiet=quiet, sentences=[sentence], tolerance=tolerance)


def _rows(image: ClusterImage) -> Iterator[_EntryRow]:
    return (_EntryRow(entry.kind, entry.subject, shown(entry, entry.values)) for entry in entries(image))


def _summary(image: ClusterImage) -> Document:
    return {
        "topics": len(image.topics),
        "partitions": sum(len(topic.partitions) for topic in image.topics.values()),
        "brokers": len(image.brokers),
        "fencedBrokers": sorted(node for node, broker in image.brokers.items() if broker["Fenced"]),
        "controllers": len(image.controllers),
        "voters": None if image.voters is None else sorted(image.voters),
        "metadataVersion": image.features.get("metadata.version"),
        "endOffset": image.end_offset,
        "timestampMs": image.as_of_ms,
    }
