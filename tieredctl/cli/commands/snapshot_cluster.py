"""`tieredctl snapshot inspect --cluster`: the cluster as of a snapshot, or of the end of the log after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tieredctl.cli.outcome import finish
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kraft.difference import in_words
from tieredctl.kraft.entries import entries, shown
from tieredctl.kraft.image import ClusterImage
from tieredctl.model.counted import counted
from tieredctl.model.tolerance import Tolerance
from tieredctl.ops.documents import Document
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

_COLUMNS = (
    TableColumn("KIND", "kind"),
    TableColumn("SUBJECT", "subject"),
    TableColumn("VALUES", lambda item: in_words(item["values"])),
)
_FIELDS = ("kind", "subject", "values")


def show_cluster(paths: Sequence[Path], output: OutputFormat, *, quiet: bool, tolerance: Tolerance) -> ExitCode:
    """Shows one item for each thing that the cluster has. Raises TieredctlError where the one path cannot be read."""
    if len(paths) != 1:
        raise TieredctlError(ErrorCode.USAGE, "--cluster is for one snapshot or folder.")
    cluster = OfflineClusterPlace(paths[0]).read()
    listing = Listing(
        "MetadataImage", cluster.describe(), _items(cluster.image), _COLUMNS, _summary(cluster.image), _FIELDS
    )
    sentence = f"The cluster as of offset {cluster.image.end_offset}: {counted(len(cluster.topic_ids), 'topic')}."
    return finish(listing, output, list(cluster.findings()), quiet=quiet, sentences=[sentence], tolerance=tolerance)


def _items(image: ClusterImage) -> Iterator[Item]:
    for entry in entries(image):
        values = shown(entry, entry.values)
        yield {"kind": entry.kind.value, "subject": entry.subject, "values": values}


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
