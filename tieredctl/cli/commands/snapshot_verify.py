"""`tieredctl snapshot verify`: whether snapshots and the metadata log are whole, sound, and fit each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.ops.snapshots.record_files import left_over_files, metadata_log_folder, record_files
from tieredctl.ops.snapshots.verification import SnapshotCheck


def verify(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", parser=given_path, help="A node's __cluster_metadata-0 or log directory, or files of it."
        ),
    ],
    view: FindingListView,
) -> ExitCode:
    """Check that KRaft snapshots and the metadata log are whole and sound, and fit each other.

    Of a folder, the snapshots must also fit the log, and the log its leader-epoch checkpoint.

    For example: tieredctl snapshot verify /var/lib/kafka/__cluster_metadata-0
    """
    check = SnapshotCheck()
    for path in paths:
        files = record_files([path])
        if path.is_dir():
            folder = metadata_log_folder(path)
            check.read_node(folder, files, left_over_files(folder))
        else:
            check.read_files(files)
    found = f"{counted(len(check.findings), 'finding')}." if check.findings else "all are sound."
    read = f"{counted(check.snapshots, 'snapshot')} and {counted(check.segments, 'log segment')}"
    source = {"kind": "metadata-log", "paths": [str(path) for path in paths]}
    headline = f"Read {read} with {counted(check.records, 'record')}: {found}"
    if not view.is_table:
        view.say(headline)
    return view.show_findings("SnapshotCheck", source, check.findings, check.summary(), headline)
