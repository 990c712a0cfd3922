"""`tieredctl wal upload`: packs brokers' active segments into combined objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.options import ClusterId, Export, NoLease, Topics, Yes
from tieredctl.cli.places import ClusterOptions, MetadataOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import byte_count, size_text
from tieredctl_proposals.cli.wal_places import WalStoreOptions

# `wal inspect` loads this module for the verb's name: what it does is loaded when it is typed.
if TYPE_CHECKING:
    from tieredctl_proposals.ops.wal.upload import UploadOutcome

_LARGEST_OBJECT = 1 << 30


def upload(
    *,
    log_dir: Annotated[
        list[Path],
        typer.Option(
            "--log-dir",
            metavar="DIR",
            parser=given_path,
            help="A broker's log directory; repeat it for several. Of replicas the one with the longest log is taken.",
        ),
    ],
    store_options: WalStoreOptions,
    topic: Topics = None,
    all_segments: Annotated[
        bool, typer.Option("--all-segments", help="Also upload closed segments, not only active ones.")
    ] = False,
    upload_bytes: Annotated[
        str, typer.Option(metavar="BYTES", help="Begin another object when one has this many bytes.")
    ] = "512KiB",
    cluster_options: ClusterOptions,
    export: Export = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    no_lease: NoLease = False,
    view: ProgressView,
) -> ExitCode:
    """Pack the active segments of brokers' log directories into combined objects, with their events (KIP-1176).

    What the store already has is not uploaded again; with --bootstrap-server or --export, nor is what remote storage
    has by its metadata. If interrupted, run the same command again. Use the log
    directories of stopped brokers, or copies. What earlier leaders uploaded and a later leader's log lacks is deleted
    by events, if you confirm it. For example: tieredctl wal upload --log-dir /var/lib/kafka --store file:/tmp/wal
    --apply
    """
    apply = choice.is_made
    from tieredctl_proposals.ops.wal.upload import UploadedSegment
    from tieredctl_proposals.wiring.wal import ActiveSegments, UploadPlace

    size = byte_count(upload_bytes)
    if not 1 <= size <= _LARGEST_OBJECT:
        raise TieredctlError(ErrorCode.USAGE, f"--upload-bytes {upload_bytes} is out of range: from 1 to 1GiB.")
    metadata = MetadataOptions(None, cluster_options.bootstrap_server, cluster_options.command_config, export)
    remote = metadata.place() if metadata.are_given else None
    place = UploadPlace(ActiveSegments(log_dir, topic or (), all_segments), store_options.place(), size, remote)
    if not apply:
        plan = place.plan()
        amount = f"{counted(len(plan.segments), 'segment')} in {counted(plan.objects, 'object')}"
        view.say(f"To upload to {plan.url}: {amount}, {size_text(plan.summary()['bytes'])}.", *_cut(plan.deleted))
        advice = choice.advice(changes=bool(plan.segments or plan.deleted))
        return view.plan("WalUploadPlan", plan, UploadedSegment, advice=advice)

    def confirm(deleted: int) -> None:
        amount = counted(deleted, "segment of an earlier leader", "segments of earlier leaders")
        what = f"Deleting {amount} by events, from {place.store.url}"
        demand_confirmation(what, place.segments.cluster_id(), yes=yes, typed_cluster_id=cluster_id)

    outcome = place.apply(clock_ms, confirm=confirm, without_lease=no_lease, tell=view.teller(_progress))
    view.say(f"Uploaded {_amount(outcome)} to {place.store.url}.", *_cut(outcome.deleted))
    source = {"kind": "log-dir", "store": place.store.url}
    summary = outcome.counts() | {"objects": outcome.objects, "deleted": outcome.deleted, "applied": True}
    return view.end(result_listing("WalUpload", source, UploadedSegment, outcome.segments, summary), outcome)


def _cut(deleted: int) -> list[str]:
    what = counted(deleted, "segment of an earlier leader is", "segments of earlier leaders are")
    return [f"{what} not in these logs: deleted by events."] if deleted else []


def _amount(outcome: UploadOutcome) -> str:
    segments, objects = counted(outcome.done, "segment"), counted(outcome.objects, "object")
    return f"{segments} in {objects}, {size_text(outcome.bytes)}"


def _progress(outcome: UploadOutcome) -> str:
    return f"{counted(outcome.objects, 'object')}, {size_text(outcome.bytes)} uploaded"
