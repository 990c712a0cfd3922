"""`tieredctl snapshot ls`: the snapshots of nodes, how they stand to the log, and which may be deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.arguments import given_path, now_ms
from tieredctl.cli.options import Now
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.view import View
from tieredctl.errors import ExitCode
from tieredctl.ops.snapshots.record_files import metadata_log_folder
from tieredctl.ops.snapshots.snapshot_list import file_row, node_rows
from tieredctl.wiring.snapshot_cleaning import retention_limits

_COLUMNS = (
    TableColumn("FILE", lambda item: Path(item["file"]).name),
    TableColumn("STATE", "state"),
    TableColumn("END-OFFSET", "endOffset"),
    TableColumn("EPOCH", "epoch"),
    TableColumn("SIZE", "size"),
    TableColumn("AGE-MS", "ageMs"),
    TableColumn("LOG", "log"),
    TableColumn("MAY-BE-DELETED", "mayBeDeleted"),
    TableColumn("LAST-CONTAINED", "lastContainedOffset", wide=True),
    TableColumn("LAST-CONTAINED-MS", "lastContainedLogTimestamp", wide=True),
    TableColumn("REASON", "reason", wide=True),
    TableColumn("PATH", "file", wide=True),
)


def list_snapshots(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", parser=given_path, help="A node's __cluster_metadata-0 or log directory, or snapshots."
        ),
    ],
    now: Now = None,
    view: View,
) -> ExitCode:
    """List KRaft snapshots: what they contain, how they stand to the log, and which may be deleted and why.

    For example: tieredctl snapshot ls /var/lib/kafka -o wide
    """
    moment = now_ms(now)
    rows: list[Item] = []
    logs: list[dict[str, Any]] = []
    for path in paths:
        if path.is_dir():
            folder = metadata_log_folder(path)
            found, log = node_rows(folder, moment, retention_limits(folder.resolve().parent))
            rows += found
            logs.append({"folder": str(folder), **log.document()})
        else:
            rows.append(file_row(path, moment))
    source = {"kind": "metadata-log", "paths": [str(path) for path in paths]}
    summary = {"snapshots": len(rows), "bytes": sum(row["size"] for row in rows), "logs": logs}
    sentences = [
        f"The log in {log['folder']} begins at {log['logStartOffset']} and ends at {_known(log['logEndOffset'])}."
        for log in logs
        if log["logStartOffset"] is not None
    ]
    return view.show(
        Listing("Snapshots", source, rows, _COLUMNS, summary), sentences=sentences if view.is_table else ()
    )


def _known(offset: int | None) -> object:
    return "an offset that damage hides" if offset is None else offset
