"""`tieredctl diskless status`."""

from __future__ import annotations

from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl_inkless.cli.diskless_places import DisklessOptions


def status(*, places: DisklessOptions, view: ProgressView) -> ExitCode:
    """Show the partitions of diskless topics, and the control plane's files by state (exit 5 if it may lack some).

    With --store, also what the bucket has that no file of the control plane is: uploads under way, and what they left.
    For example: tieredctl diskless status --control-plane postgresql://reader@db/inkless
    """
    from tieredctl_inkless.ops.diskless.status import DisklessPartition, diskless_partitions, status_summary
    from tieredctl_inkless.wiring.diskless import control_plane_status

    current = control_plane_status(places.place(), places.bucket_if_given())
    summary = status_summary(current.tables, current.bucket)
    if not view.is_table:
        summary["findings"] = finding_documents(current.findings)
    rows = list(diskless_partitions(current.tables))
    listing = result_listing("DisklessStatus", current.source, DisklessPartition, rows, summary)
    return view.show(listing, current.findings, sentences=_sentences(summary) if view.is_table else ())


def _sentences(summary: Document) -> list[str]:
    files, batches = summary["files"], summary["batches"]
    sentences = [f"Schema version {summary['schemaVersion']}, read at {summary['readAt']}."]
    for state, totals in files.items():
        if totals["files"]:
            since = f", the oldest since {totals['oldest']}" if totals["oldest"] else ""
            sentences.append(f"{counted(totals['files'], 'file')} {state}, {size_text(totals['bytes'])}{since}.")
    sentences.append(
        f"{counted(batches, 'batch', 'batches')} of {counted(summary['partitions'], 'partition')}, "
        f"{size_text(summary['liveBytes'])}."
    )
    if left := summary["uncommitted"]:
        oldest = f", the oldest of {left['oldest']}" if left["oldest"] else ""
        sentences.append(
            f"{left['objects']} of {counted(summary['objects'], 'object')} in the bucket, "
            f"{size_text(left['bytes'])}, {'is' if left['objects'] == 1 else 'are'} not committed{oldest}."
        )
    if (others := summary["others"]) and others["objects"]:
        verb = "was" if others["objects"] == 1 else "were"
        size = size_text(others["bytes"])
        sentences.append(f"{counted(others['objects'], 'other object')}, {size}, {verb} not written by its brokers.")
    return sentences
