"""`tieredctl metadata lookup`: which segment serves a fetch."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, GREATEST_INT64, topic_partition
from tieredctl.cli.metadata_listing import metadata_listing
from tieredctl.cli.metadata_tables import SEGMENT_COLUMNS, SEGMENT_FIELDS
from tieredctl.cli.options import Output, TopicIds
from tieredctl.cli.outcome import finish, say
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.places import PastMetadataOptions
from tieredctl.cli.view import Talk
from tieredctl.errors import ExitCode
from tieredctl.ops.documents import segment_document
from tieredctl.ops.metadata.selection import Selection


def lookup(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION")],
    epoch: Annotated[
        int | None,
        typer.Option(
            metavar="EPOCH",
            help="The leader epoch that the reader has for this offset; without it, the one that owns the offset now.",
            min=0,
            max=GREATEST_INT32,
        ),
    ] = None,
    offset: Annotated[int, typer.Option(metavar="OFFSET", help="The offset to fetch.", min=0, max=GREATEST_INT64)],
    metadata_options: PastMetadataOptions,
    topic_id: TopicIds = None,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Show which segment serves a fetch, or why none does (exit 3).

    Without --epoch the partition's leader is asked which leader epoch owns the offset, or a log directory's
    leader-epoch-checkpoint; otherwise the segments tell. Exit 5 where they leave a choice.

    For example: tieredctl metadata lookup orders:0 --epoch 3 --offset 4711 --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.ops.metadata.offset_owner import epochs_with, owner_of_offset
    from tieredctl.wiring.metadata import lineages, opened_partition

    topic, partition = topic_partition(where)
    selection = Selection.given([topic], topic_id, [partition])
    place = metadata_options.place()
    with opened_partition(place, selection) as opened:
        epoch_fields, answer, otherwise, sentences = {}, metadata_state.Lookup(None, None), ExitCode.FINDINGS, []
        if epoch is None:
            owner = owner_of_offset(opened.cache, offset, lineages(place, opened.partition))
            epoch = owner.leader_epoch
            epoch_fields = {"leaderEpoch": epoch, "leaderEpochFrom": str(owner.source)}
            answer = metadata_state.Lookup(None, owner.why_unknown)
            sentences.append(f"Leader epoch {epoch} owns it (by the {owner.source}).")
        if epoch is not None:
            answer = metadata_state.lookup(opened.cache, epoch, offset)
            sentences += [f"No segment serves it: {answer.reason}."] if answer.reason else []
        elif epochs_with(opened.cache, offset):
            otherwise = ExitCode.INCOMPLETE
            sentences = [f"Which leader epoch owns it is unknown: {answer.reason}. Give --epoch."]
        else:
            sentences = [f"No segment serves it: {answer.reason}."]
        items = [segment_document(answer.segment)] if answer.segment else []
        listing = metadata_listing(
            "SegmentLookup", opened.stream, items, SEGMENT_COLUMNS, SEGMENT_FIELDS, reason=answer.reason, **epoch_fields
        )
        if sentences and output.is_table and not talk.quiet:
            say("\n".join(sentences))
        findings = [finding for finding in opened.stream.findings if finding.kind.incomplete]
        return finish(
            listing, output, findings, quiet=talk.quiet, besides=ExitCode.CLEAN if answer.segment else otherwise
        )
