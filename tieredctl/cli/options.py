"""Options that mean the same in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import TyperPath

from tieredctl.cli.arguments import (
    GREATEST_INT32,
    bootstrap_servers,
    given_path,
    ignored_finding,
    kafka_id,
    severity,
)
from tieredctl.cli.context_in_use import Role
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.progress import ProgressMode
from tieredctl.model.findings import Severity
from tieredctl.model.named_cluster import name_cluster
from tieredctl.model.tolerance import Ignored


class _Folder(TyperPath):
    """A variable has several as PATH has them: folders' names may have spaces."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:  # noqa: ARG002 - Typer gives them
        return given_path(value)


VerifyResult = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=given_path, help="The segments of which `verify -o json` reported a part."),
]
IndexIntervalBytes = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES",
        help="The topic's index.interval.bytes; a live cluster is asked by default.",
        min=0,
        max=(1 << 31) - 1,
    ),
]
LogDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--log-dir",
        metavar="DIR",
        click_type=_Folder(),
        help="Read metadata from a broker's log directory; repeat it for several.",
        envvar="TIEREDCTL_LOG_DIR",
    ),
    Role.INSTEAD,
]
BootstrapServer = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        parser=bootstrap_servers,
        help="Read metadata from a live cluster.",
        envvar="TIEREDCTL_BOOTSTRAP_SERVER",
    ),
    Role.CLUSTER,
]
BootstrapController = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        parser=bootstrap_servers,
        help="A controller's own listener; any of the quorum, or several with commas between them.",
    ),
    Role.ELSEWHERE,
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=given_path,
        help="Client properties, as for Kafka's own tools.",
        envvar="TIEREDCTL_COMMAND_CONFIG",
    ),
    Role.COMMAND_CONFIG,
]
Export = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=given_path,
        help="Read metadata from a file that `metadata export` wrote.",
        envvar="TIEREDCTL_EXPORT",
    ),
    Role.INSTEAD,
]
MetadataSource = Annotated[
    str | None,
    typer.Option(
        metavar="NAME:LOCATION",
        help="Read metadata with a plugin for another remote log metadata manager.",
        envvar="TIEREDCTL_METADATA_SOURCE",
    ),
    Role.INSTEAD,
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
        metavar="FILE",
        parser=given_path,
        help="A file with the ids of all live topics, one per line; the cluster is not asked.",
    ),
    Role.ELSEWHERE,
]
KraftSnapshot = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        parser=given_path,
        help="Read the cluster from a KRaft snapshot, or a node's __cluster_metadata-0, when no broker answers.",
    ),
    Role.INSTEAD,
]
Inventory = Annotated[
    str | None,
    typer.Option(
        metavar="PATH-OR-URL",
        help="The manifest of the bucket's S3, Azure Blob or Storage Insights inventory, instead of listing it.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=given_path,
        help="Checkpoint the listing in this file; rerun with it to continue.",
    ),
]
MinAge = Annotated[str, typer.Option(metavar="DURATION", help="Ignore objects younger than this: 90s, 15m, 24h, 7d.")]
ClusterId = Annotated[
    str | None, typer.Option(metavar="ID", parser=name_cluster, help="Fail unless this is the cluster.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needs --cluster-id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check that it could be done; change nothing.")]
OfflineMetadata = Annotated[
    bool,
    typer.Option(
        "--offline-metadata",
        help="The cluster no longer exists; read --log-dir, --export or --metadata-source instead.",
    ),
    Role.INSTEAD,
]
NoLease = Annotated[
    bool,
    typer.Option(
        "--no-lease",
        help="Run without a lease, on stores without conditional writes; make sure no other run is active.",
    ),
]
AsOfPoint = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="OFFSET-FILE|TIME",
        help="The state at a point: a file of metadata offsets, or a time (ISO 8601, or ms since the epoch).",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only records appended then or later (ISO 8601, or ms since the epoch)."),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only records appended then or earlier (the same).")]
Store = Annotated[str | None, typer.Option(metavar="URL", help="The remote store, such as file:DIR."), Role.ELSEWHERE]
"""That of other objects than tiered segments, or one that stands beside a file which says more of it."""
TieredStore = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="The remote store, such as file:DIR.", envvar="TIEREDCTL_STORE"),
    Role.STORE,
]
TieredStoreOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--store-option",
        metavar="NAME=VALUE",
        help="A store setting; repeat it for several.",
        envvar="TIEREDCTL_STORE_OPTION",
    ),
    Role.STORE_OPTIONS,
]
StoreOptions = Annotated[
    list[str] | None,
    typer.Option("--store-option", metavar="NAME=VALUE", help="A store setting; repeat it for several."),
]
LayoutName = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="How keys map to segments: local, a plugin's, or auto to detect it.",
        envvar="TIEREDCTL_LAYOUT",
    ),
    Role.LAYOUT,
]
LayoutOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--layout-option",
        metavar="NAME=VALUE",
        help="A layout setting; repeat it for several.",
        envvar="TIEREDCTL_LAYOUT_OPTION",
    ),
    Role.LAYOUT_OPTIONS,
]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic; repeat it for several.")
]
TopicIds = Annotated[
    list[str] | None,
    typer.Option(
        "--topic-id", metavar="TOPIC-ID", parser=kafka_id, help="Only the topic with this id; repeat it for several."
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        metavar="NUMBER",
        help="Only this partition; repeat it for several.",
        min=0,
        max=GREATEST_INT32,
    ),
]
SegmentIds = Annotated[
    list[str] | None,
    typer.Option(
        "--segment-id", metavar="SEGMENT-ID", parser=kafka_id, help="Only this segment; repeat it for several."
    ),
]
MetadataPartition = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="Only this partition of __remote_log_metadata.", min=0, max=GREATEST_INT32),
]
Output = Annotated[
    OutputFormat,
    typer.Option(
        "--output",
        "-o",
        help="Output format; wide is a table with more columns.",
        case_sensitive=False,
        envvar="TIEREDCTL_OUTPUT",
    ),
]
Results = Annotated[
    list[Path] | None,
    typer.Option(
        "--result",
        metavar="DIR|FILE",
        parser=given_path,
        help="What an earlier scan or verification left: JSON, metrics, a mark, or a folder of such files; repeat it "
        "for several.",
    ),
]
StuckAfter = Annotated[
    str,
    typer.Option(
        "--older-than", metavar="DURATION", help="Report copies and deletions as stuck when they take longer."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Write only errors to stderr.")]
MetricsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=given_path, help="Write metrics to this file, for Prometheus' node exporter."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        parser=given_path,
        help="Write a page (HTML) of what is found to this file; an earlier page is replaced.",
    ),
]
Now = Annotated[str | None, typer.Option(metavar="TIME", help="Compute ages from this time instead of the clock.")]
Engine = Annotated[str, typer.Option(metavar="local|spark", help="Where bulk work runs.")]
SparkConf = Annotated[
    list[str] | None,
    typer.Option("--spark-conf", metavar="NAME=VALUE", help="A Spark setting; repeat it for several."),
]
ProgressStyle = Annotated[
    ProgressMode, typer.Option("--progress", help="How to show progress.", envvar="TIEREDCTL_PROGRESS")
]
FailOn = Annotated[
    Severity | None,
    typer.Option(
        metavar="info|warning|error|critical",
        parser=severity,
        help="Exit 3 only for findings of this severity or graver; by default warning. 4 and 5 stay.",
    ),
]
Ignore = Annotated[
    list[Ignored] | None,
    typer.Option(
        metavar="CODE[:SUBJECT]",
        parser=ignored_finding,
        help="Leave findings of this code, or about this subject alone, out of the exit code; they are counted. "
        "Repeat it for several.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Show this many findings of each code; -o json has all."),
]
AllFindings = Annotated[bool, typer.Option("--all", help="Show all findings of each code.")]
