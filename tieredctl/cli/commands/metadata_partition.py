"""`tieredctl metadata partition-of`: where the events of a user partition are."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, kafka_id, topic_partition
from tieredctl.cli.options import Output
from tieredctl.cli.outcome import finish
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.places import MetadataOptions
from tieredctl.cli.view import Talk
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.ids import is_uuid
from tieredctl.rlmm.partitioner import DEFAULT_METADATA_PARTITIONS, metadata_partition


def partition_of(
    *,
    where: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC:PARTITION",
            help="TOPIC-ID:PARTITION needs nothing else; a topic's name is looked up in the metadata.",
        ),
    ],
    number: Annotated[
        int | None,
        typer.Argument(metavar="[PARTITION]", min=0, max=GREATEST_INT32, help="The partition, after TOPIC-ID alone."),
    ] = None,
    metadata_partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="The cluster's remote.log.metadata.topic.num.partitions; by default what the metadata shows, or 50.",
            min=1,
            max=GREATEST_INT32,
        ),
    ] = None,
    metadata_options: MetadataOptions,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Show which metadata partition holds a user partition's events.

    For example: tieredctl metadata partition-of Ex-aw3fEQIi3do0H9Y7cKQ:0
    """
    if number is None:
        if is_uuid(where):
            raise TieredctlError(ErrorCode.USAGE, "No PARTITION was given.", hint=f"For example {where}:0.")
        topic, number = topic_partition(where)
    else:
        topic = kafka_id(where)
    if is_uuid(topic):
        topic_id, count = topic, metadata_partitions or DEFAULT_METADATA_PARTITIONS
    else:
        topic_id, count = _looked_up(topic, number, metadata_partitions, metadata_options)
    home = metadata_partition(topic_id, number, count)
    if output is OutputFormat.TABLE:
        print(home)
        return ExitCode.CLEAN
    item = {"topicId": topic_id, "partition": number, "metadataPartition": home}
    source = {"kind": "arguments", "metadataPartitions": count}
    columns = tuple(TableColumn(name, name) for name in item)
    return finish(
        Listing("MetadataPartition", source, [item], columns, {"items": 1}, tuple(item)), output, [], quiet=talk.quiet
    )


def _looked_up(topic: str, number: int, metadata_partitions: int | None, options: MetadataOptions) -> tuple[str, int]:
    """A topic's present id, and how many metadata partitions there are."""
    from tieredctl.ops.metadata.selection import Selection
    from tieredctl.wiring.metadata import opened_partition

    if not options.are_given:
        message = f"The id of topic {topic} is looked up in the metadata, and none was given."
        hint = "Give TOPIC-ID:PARTITION, or one of --log-dir, --bootstrap-server, --export or --metadata-source."
        raise TieredctlError(ErrorCode.NO_SOURCE, message, hint=hint)
    with opened_partition(options.place(), Selection.of(topic, None, number)) as opened:
        counts = opened.stream.coverage.counts
    if metadata_partitions is None and (counts is None or len(counts) != 1):
        message = "How many metadata partitions the cluster has is unknown."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give --metadata-partitions.")
    return opened.partition.topic_id, metadata_partitions or (counts or [DEFAULT_METADATA_PARTITIONS])[0]
