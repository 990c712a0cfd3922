"""`tieredctl diskless explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import only_id, topic_partition_offset
from tieredctl.cli.options import TopicIds
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.places import MetadataOptions
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl_inkless.cli.diskless_places import DisklessOptions

_COLUMNS = (TableColumn("FACT", "fact"), TableColumn("VALUE", "value"))


def explain(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION@OFFSET", help="A record, such as orders:3@1200.")],
    topic_id: TopicIds = None,
    places: DisklessOptions,
    metadata_options: MetadataOptions,
    view: FindingsView,
) -> ExitCode:
    """Show where an offset lies: its object, the bytes in it, the file's state, and how many other partitions share it.

    With --store, also whether the object is there and which record batch in it holds the offset. A partition may also
    have tiered segments: with a source of their metadata, it is asked too. Exit 3 if nothing holds the offset, 4 if it
    should.
    For example: tieredctl diskless explain orders:3@1200 --control-plane service=inkless
    """
    from tieredctl_inkless.ops.diskless.explain import Tier
    from tieredctl_inkless.wiring.diskless import explain_diskless

    topic, partition, offset = topic_partition_offset(where)
    if offset is None:
        raise TieredctlError(ErrorCode.USAGE, "Name one offset, as TOPIC:PARTITION@OFFSET.")
    meant = TopicIdPartition(only_id(topic_id) or "", topic, partition)
    metadata = metadata_options.place() if metadata_options.are_given else None
    source, explanation = explain_diskless(places.place(), places.bucket_if_given(), metadata, meant, offset)
    items = _facts(explanation.document) if view.is_table else [explanation.document]
    listing = Listing("DisklessExplanation", source, items, _COLUMNS, {"tier": explanation.tier.value}, tuple(items[0]))
    return view.show(
        listing, explanation.findings, ExitCode.FINDINGS if explanation.tier is Tier.NONE else ExitCode.CLEAN
    )


def _facts(document: Item, prefix: str = "") -> list[Item]:
    """A row for each field that says something."""
    facts: list[Item] = []
    for name, value in document.items():
        if isinstance(value, dict):
            facts += _facts(value, f"{prefix}{name}.")
        elif value is not None:
            facts.append({"fact": prefix + name, "value": value})
    return facts
