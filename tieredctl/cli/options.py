"""Options that mean the same in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.output import OutputFormat
from tieredctl.cli.progress import ProgressMode

LogDirs = Annotated[
    list[Path] | None,
    typer.Option("--log-dir", help="A broker's log directory; repeat it for several."),
]
BootstrapServer = Annotated[str | None, typer.Option(help="A live cluster, as HOST:PORT.")]
CommandConfig = Annotated[Path | None, typer.Option(help="Client properties, as Kafka's own tools take them.")]
Export = Annotated[Path | None, typer.Option(help="What `metadata export` wrote.")]
AsOfPoint = Annotated[
    str | None,
    typer.Option("--as-of", help="State at a point: a file of metadata offsets, or a time (ISO 8601, or ms)."),
]
Store = Annotated[str | None, typer.Option(help="The remote store, such as file:DIR.")]
StoreOptions = Annotated[
    list[str] | None, typer.Option("--store-option", help="NAME=VALUE for the store.")
]
LayoutName = Annotated[str, typer.Option("--layout", help="How keys map to segments: local, a plugin's, or auto.")]
LayoutOptions = Annotated[
    list[str] | None, typer.Option("--layout-option", help="NAME=VALUE for the layout.")
]
Topic = Annotated[str | None, typer.Option(help="Only this topic.")]
TopicId = Annotated[str | None, typer.Option(help="Only this topic id.")]
Partition = Annotated[int | None, typer.Option(help="Only this partition.", min=0)]
SegmentId = Annotated[str | None, typer.Option(help="Only this segment.")]
MetadataPartition = Annotated[int | None, typer.Option(help="Only this metadata partition.", min=0)]
Output = Annotated[OutputFormat, typer.Option("--output", "-o", help="How to show it.", case_sensitive=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours, as NO_COLOR does.")]
MetricsFile = Annotated[Path | None, typer.Option(help="Write Prometheus text here, for a node exporter.")]
Now = Annotated[str | None, typer.Option(help="Take ages against this time instead of the clock.")]
Engine = Annotated[str, typer.Option(help="Where bulk work runs: local or spark.")]
SparkConf = Annotated[
    list[str] | None, typer.Option("--spark-conf", help="NAME=VALUE for Spark.")
]
ProgressStyle = Annotated[ProgressMode, typer.Option("--progress", help="How to show long work.")]
