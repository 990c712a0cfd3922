"""`tieredctl wal explain`: which object and which of its bytes serve an offset."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import only_id, topic_partition_offset
from tieredctl.cli.options import TopicIds
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl_proposals.cli.wal_places import WalStoreOptions


def explain(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION@OFFSET", help="A record, such as orders:3@1200.")],
    store_options: WalStoreOptions,
    topic_id: TopicIds = None,
    view: FindingsView,
) -> ExitCode:
    """Show which combined object serves an offset, and at which bytes, for a follower and for a consumer (KIP-1176).

    By the events alone: positions are inclusive. Exit 3 if no object holds the offset, 4 if its object is missing or
    damaged, 5 if events are. For example: tieredctl wal explain orders:3@1200 --store file:/tmp/wal
    """
    from tieredctl_proposals.ops.wal.contents import read_events
    from tieredctl_proposals.ops.wal.explain import ReaderRow, explain_wal

    topic, partition, offset = topic_partition_offset(where)
    if offset is None:
        raise TieredctlError(ErrorCode.USAGE, f"{where!r} names no offset.", hint="For example orders:3@1200.")
    opened = store_options.place().open_store()
    events = read_events(opened)
    explanation = explain_wal(opened, events, topic, partition, offset, only_id(topic_id))
    findings = [*events.findings, *explanation.findings]
    if not explanation.is_held:
        view.say(f"No combined object holds offset {offset} of {topic}-{partition}.")
    source = {"kind": "wal-store", "store": opened.url}
    summary = {"topic": topic, "topicId": explanation.partition.topic_id, "partition": partition, "offset": offset}
    otherwise = ExitCode.CLEAN if explanation.is_held else ExitCode.FINDINGS
    summary["found"] = explanation.is_held
    listing = result_listing("WalExplanation", source, ReaderRow, explanation.rows, summary)
    return view.show(listing, findings, otherwise)
