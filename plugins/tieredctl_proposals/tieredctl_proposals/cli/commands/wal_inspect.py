"""`tieredctl wal inspect`: the combined objects of a store, with their states and segments."""

from __future__ import annotations

from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Item
from tieredctl.cli.places import PartitionOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl_proposals.cli.wal_places import WalStoreOptions

_MOST_SHOWN = 3


def _segments(item: Item) -> str:
    """The first few, such as orders-0@0..99."""
    places = [f"{one['topic']}-{one['partition']}{_offsets(one)}" for one in item["segments"]]
    more = len(places) - _MOST_SHOWN
    return ", ".join(places[:_MOST_SHOWN]) + (f", {more} more" if more > 0 else "")


def _offsets(segment: Item) -> str:
    return "" if segment["startOffset"] is None else f"@{segment['startOffset']}..{segment['endOffset']}"


def _size(item: Item) -> object:
    return "missing" if item["size"] is None else item["size"]


def inspect(
    *,
    store_options: WalStoreOptions,
    selected: PartitionOptions,
    view: FindingsView,
) -> ExitCode:
    """Show the combined objects of a store: states, and which offsets of which partitions are at which bytes.

    Objects without events are shown by their own index. Exit 5 if events are missing or damaged.
    For example: tieredctl wal inspect --store file:/tmp/wal --topic orders
    """
    from tieredctl_proposals.ops.wal.contents import nothing_in, read_contents
    from tieredctl_proposals.ops.wal.inspect import CombinedObject, inspect_wal

    opened = store_options.place().open_store()
    contents = read_contents(opened)
    inspection = inspect_wal(opened, contents, selected.selection())
    findings = contents.events.findings
    summary = {**inspection.summary, "findings": finding_documents(findings)}
    amount = f"{counted(summary['objects'], 'object')}, {size_text(summary['bytes'])}"
    view.say(f"{amount}, {counted(summary['segments'], 'segment')}." if contents.is_there else nothing_in(opened.url))
    source = {"kind": "wal-store", "store": opened.url}
    listing = result_listing(
        *("WalInspection", source, CombinedObject, inspection.rows, summary),
        state=lambda item: item["state"] or "without events",
        size=_size,
        segments=_segments,
    )
    return view.show(listing, findings)
