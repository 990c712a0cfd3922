"""`tieredctl wal restore`: a broker's log directory from combined objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.options import DryRun
from tieredctl.cli.places import MetadataOptions, PartitionOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl_proposals.cli.wal_places import WalStoreOptions

# `wal inspect` loads this module for the verb's name: what it does is loaded when it is typed.
if TYPE_CHECKING:
    from tieredctl_proposals.ops.wal.restored_log import RestoredLog


def restore(
    *,
    store_options: WalStoreOptions,
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", parser=given_path, help="The log directory to write; new or empty.")
    ],
    selected: PartitionOptions,
    broker_files_from: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=given_path,
            help="Also copy meta.properties, bootstrap.checkpoint and __cluster_metadata-0 from this log directory.",
        ),
    ] = None,
    untiered_topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC",
            help="Restore this topic from above offset 0, since it is not tiered (KIP-405); repeat it for several.",
        ),
    ] = None,
    with_gaps: Annotated[
        bool, typer.Option("--with-gaps", help="Restore what there is of partitions with missing offsets.")
    ] = False,
    metadata_options: MetadataOptions,
    without_events: Annotated[
        bool,
        typer.Option(
            "--without-events",
            help="Go by the objects' own indexes, where their events are lost; also restores what was deleted since.",
        ),
    ] = False,
    dry_run: DryRun = False,
    view: FindingsView,
) -> ExitCode:
    """Write a log directory that a broker can start on, from combined objects: every uploaded batch, byte for byte.

    Writes partition folders with logs, leader epochs and topic ids; a broker rebuilds the indexes. Either all of it
    appears or nothing. What begins above offset 0 needs the metadata of remote storage, which has the leader epochs
    below it, unless its topic is not tiered. Exit 4 if offsets are missing. For example: tieredctl wal restore
    --store file:/tmp/wal --to /var/lib/kafka-restored --broker-files-from /var/lib/kafka --export metadata.jsonl
    """
    from tieredctl_proposals.ops.wal.restore import RestoredPartition, RestoreOptions
    from tieredctl_proposals.wiring.wal import restore_wal

    options = RestoreOptions(
        selected.selection(), broker_files_from, untiered_topic or (), with_gaps, without_events, dry_run
    )
    metadata = metadata_options.place() if metadata_options.are_given else None
    restored = restore_wal(store_options.place(), to, options, view.teller(_progress), metadata)
    outcome = restored.outcome
    rows = [] if outcome is None else outcome.rows()
    summary: Document = {
        "partitions": len(rows),
        "batches": sum(row.batches for row in rows),
        "bytes": sum(row.bytes for row in rows),
        "brokerFiles": [] if outcome is None else outcome.broker_files,
        "gaps": len(restored.findings),
        "dryRun": dry_run,
    }
    if outcome is None:
        view.say("Nothing was written: offsets are missing. --with-gaps restores what there is.")
    else:
        amount = f"{counted(len(rows), 'partition')}, {counted(summary['batches'], 'batch', 'batches')}"
        view.say(f"{'Would restore' if dry_run else 'Restored'} {amount}, {size_text(summary['bytes'])}, to {to}.")
    source = {"kind": "wal-store", "store": restored.url, "to": str(to)}
    return view.show(result_listing("WalRestore", source, RestoredPartition, rows, summary), restored.findings)


def _progress(log: RestoredLog) -> str:
    return f"{log.partition.topic}-{log.partition.partition}: {size_text(log.bytes)} read"
