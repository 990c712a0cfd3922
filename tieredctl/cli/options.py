"""Options that mean the same in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, bootstrap_servers, given_path, kafka_id
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.progress import ProgressMode

LogDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--log-dir",
        metavar="DIR",
        parser=given_path,
        help="Read metadata from a broker's log directory; repeat it for several.",
    ),
]
BootstrapServer = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", parser=bootstrap_servers, help="Read metadata from a live cluster."),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=given_path, help="Client properties, as Kafka's own tools take them."),
]
Export = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=given_path, help="Read metadata from what `metadata export` wrote."),
]
MetadataSource = Annotated[
    str | None,
    typer.Option(metavar="NAME:LOCATION", help="Read metadata with a plugin, of another remote log metadata manager."),
]
MetadataSourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata-source-option",
        metavar="NAME=VALUE",
        help="A setting of --metadata-source; repeat it for several.",
    ),
]
LiveTopicIds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", parser=given_path, help="The ids of all topics that there are, one a line, without asking."
    ),
]
KraftSnapshot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=given_path, help="Which topics there were, for a cluster that is down."),
]
Inventory = Annotated[
    str | None,
    typer.Option(
        metavar="PATH-OR-URL",
        help="The manifest of an S3 Inventory or a Storage Insights report of the bucket, instead of listing it.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=given_path,
        help="Keeps what was listed; run it again with this file, and an interrupted listing goes on.",
    ),
]
MinAge = Annotated[
    str, typer.Option(metavar="DURATION", help="Younger objects may still get an owner: 90s, 15m, 24h, 7d.")
]
ClusterId = Annotated[str | None, typer.Option(metavar="ID", help="The cluster that this is about, to be sure.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needs --cluster-id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Look whether it could be done, and change nothing.")]
OfflineMetadata = Annotated[
    bool,
    typer.Option(
        "--offline-metadata", help="The cluster is no more: take --log-dir, --export or --metadata-source instead."
    ),
]
NoLease = Annotated[
    bool, typer.Option("--no-lease", help="For stores that cannot keep two runs apart: see to it yourself.")
]
AsOfPoint = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="OFFSET-FILE|TIME",
        help="The state at a point: a file of metadata offsets, or a time (ISO 8601, or ms since the epoch).",
    ),
]
Store = Annotated[str | None, typer.Option(metavar="URL", help="The remote store, such as file:DIR.")]
StoreOptions = Annotated[
    list[str] | None,
    typer.Option("--store-option", metavar="NAME=VALUE", help="A setting of the store; repeat it for several."),
]
LayoutName = Annotated[
    str,
    typer.Option("--layout", metavar="NAME", help="How keys map to segments: local, a plugin's, or auto to look."),
]
LayoutOptions = Annotated[
    list[str] | None,
    typer.Option("--layout-option", metavar="NAME=VALUE", help="A setting of the layout; repeat it for several."),
]
Topic = Annotated[str | None, typer.Option(metavar="TOPIC", help="Only this topic.")]
TopicId = Annotated[str | None, typer.Option(metavar="TOPIC-ID", parser=kafka_id, help="Only the topic with this id.")]
Partition = Annotated[
    int | None, typer.Option(metavar="NUMBER", help="Only this partition.", min=0, max=GREATEST_INT32)
]
SegmentId = Annotated[str | None, typer.Option(metavar="SEGMENT-ID", parser=kafka_id, help="Only this segment.")]
MetadataPartition = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="Only this partition of __remote_log_metadata.", min=0, max=GREATEST_INT32),
]
Output = Annotated[
    OutputFormat,
    typer.Option(
        "--output", "-o", help="The form of the answer; wide is a table with more columns.", case_sensitive=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
MetricsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=given_path, help="Write Prometheus text here, for a node exporter."),
]
Now = Annotated[str | None, typer.Option(metavar="TIME", help="Take ages against this time instead of the clock.")]
Engine = Annotated[str, typer.Option(metavar="local|spark", help="Where bulk work runs.")]
SparkConf = Annotated[
    list[str] | None,
    typer.Option("--spark-conf", metavar="NAME=VALUE", help="A setting of Spark; repeat it for several."),
]
ProgressStyle = Annotated[ProgressMode, typer.Option("--progress", help="How to show long work.")]
