"""`tieredctl explain`: where a record lives, and how a consumer or a follower would get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, clock_ms, topic_partition_offset
from tieredctl.cli.explanation_table import EXPLANATION_COLUMNS, EXPLANATION_FIELDS, explanation_rows, write_explanation
from tieredctl.cli.options import Output, TopicIds
from tieredctl.cli.outcome import finding_documents, finish, say
from tieredctl.cli.output import Item, Listing, OutputFormat
from tieredctl.cli.places import PastMetadataOptions, RemoteOptions
from tieredctl.cli.view import Talk, ToleranceOptions
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import time_ms
from tieredctl.ops.explanation.explain import explain_metadata
from tieredctl.ops.explanation.explanation import Explanation, explanation_document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.wiring.explain import explained


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Makes `explain` known."""
    del meaning  # its own text says more
    app.command(noun)(explain)


def explain(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION[@OFFSET]", help="A record, such as orders:3@1200.")],
    timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="Instead of @OFFSET: the first record at or after this time.")
    ] = None,
    epoch: Annotated[
        int | None,
        typer.Option(
            metavar="EPOCH", help="The leader epoch that the reader has for this offset.", min=0, max=GREATEST_INT32
        ),
    ] = None,
    metadata_options: PastMetadataOptions,
    topic_id: TopicIds = None,
    remote_options: RemoteOptions,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Show where a record lives, and how a consumer or a follower would get it. Its leader epoch, its segment and the
    segment's objects, the leader's disk; and what a fetch of it would do.

    With a log directory or an export there is no leader to ask: they show remote storage only. Exit 3 if nothing holds
    the offset, 4 if an object is missing.

    For example: tieredctl explain orders:0@4711 --bootstrap-server broker:9092
    """
    topic, partition, offset = topic_partition_offset(where)
    if (offset is None) == (timestamp is None):
        raise TieredctlError(ErrorCode.USAGE, "Name one offset, as TOPIC:PARTITION@OFFSET, or a time with --timestamp.")
    if metadata_options.bootstrap_server is None and timestamp is not None:
        raise TieredctlError(
            ErrorCode.USAGE, "Only a live cluster can look up a time.", hint="Give --bootstrap-server."
        )
    if metadata_options.bootstrap_server is not None and (metadata_options.as_of is not None or topic_id):
        raise TieredctlError(
            ErrorCode.USAGE, "--as-of and --topic-id are not for a live cluster: it answers for the topic as it is now."
        )
    moment = None if timestamp is None else time_ms(timestamp)

    def look(stream: EventStream) -> Explanation | None:
        if offset is not None and metadata_options.bootstrap_server is None:
            return explain_metadata(stream, Selection.given([topic], topic_id, [partition]), offset, epoch)
        from tieredctl.ops.explanation.explain_live import TopicPlace, explain_live

        with metadata_options.cluster().place().open() as cluster:
            return explain_live(cluster, stream, TopicPlace(topic, partition, offset, moment), epoch)

    with explained(metadata_options.place(), remote_options.place_if_given(), look) as reading:
        explanation, stream = reading.found, reading.stream
        findings = [*(finding for finding in stream.findings if finding.kind.incomplete), *reading.findings]
        items: list[Item] = []
        if explanation:
            items.append(explanation_document(explanation, reading.objects))
        elif not talk.quiet:
            say(f"{topic}-{partition} has no record at or after that time.")
        code = ExitCode.CLEAN if explanation and explanation.readable else ExitCode.FINDINGS
        listing = _listing(stream, items, findings, output)
        if explanation and output is OutputFormat.TABLE:
            written = partial(write_explanation, explanation, [*listing.items], now_ms=clock_ms())
            listing = replace(listing, write_text=written)
        return finish(listing, output, findings, quiet=talk.quiet, besides=code, tolerance=tolerated.tolerance)


def _listing(stream: EventStream, items: list[Item], findings: Sequence[Finding], output: OutputFormat) -> Listing:
    summary = {"items": len(items), "findings": finding_documents(findings)}
    rows = items
    if output.is_table:
        rows = [row for item in items for row in explanation_rows(item)]
    return Listing("Explanation", stream.source.describe, rows, EXPLANATION_COLUMNS, summary, EXPLANATION_FIELDS)
