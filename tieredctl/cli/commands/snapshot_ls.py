"""`tieredctl snapshot ls`: the snapshots of nodes, how they stand to the log, and which may be deleted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, GREATEST_INT64, given_path, now_ms
from tieredctl.cli.options import Now
from tieredctl.cli.output import TableColumn
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kraft.follower import Answer, follower_answer
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.snapshots.record_files import metadata_log_folder
from tieredctl.ops.snapshots.snapshot_list import ListedSnapshot, checked, file_row, node_rows
from tieredctl.wiring.offline_cluster import read_replica
from tieredctl.wiring.snapshot_cleaning import node_limits
from tieredctl.wiring.snapshot_verification import contradicted

_FILE = TableColumn("FILE", lambda item: Path(item["file"]).name)
_OFFSET_AND_EPOCH = re.compile(r"([0-9]{1,19}):([0-9]{1,10})")


def list_snapshots(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", parser=given_path, help="A node's __cluster_metadata-0 or log directory, or snapshots."
        ),
    ],
    follower_at: Annotated[
        str | None,
        typer.Option(
            metavar="OFFSET:EPOCH",
            help="Also show what each node, if it leads, sends a follower at the end of such a log.",
        ),
    ] = None,
    now: Now = None,
    view: FindingsView,
) -> ExitCode:
    """List KRaft snapshots: what they contain, how they stand to the log, and which may be deleted and why.

    For example: tieredctl snapshot ls /var/lib/kafka -o wide
    """
    moment, follower = now_ms(now), None if follower_at is None else _offset_and_epoch(follower_at)
    rows: list[ListedSnapshot] = []
    logs: list[Document] = []
    untrue: list[Finding] = []
    for path in paths:
        if path.is_dir():
            folder = metadata_log_folder(path)
            limits = node_limits(folder.resolve().parent)
            of_node, log = node_rows(folder, moment, limits.limits)
            rows += of_node
            untrue += contradicted(folder)
            logs.append({"folder": str(folder), **log.document(), "limitsFrom": dict(limits.sources)})
            if follower is not None:
                logs[-1]["follower"] = follower_answer(read_replica(folder), *follower).document()
        elif follower is not None:
            raise TieredctlError(ErrorCode.USAGE, f"--follower-at is for nodes' folders, and {path} is not one.")
        else:
            rows.append(file_row(path, moment))
    rows, findings = checked(rows, untrue)
    source = {"kind": "metadata-log", "paths": [str(path) for path in paths]}
    summary = {"snapshots": len(rows), "bytes": sum(row.size for row in rows), "logs": logs}
    sentences = [
        f"The log in {log['folder']} begins at {log['logStartOffset']} and ends at {_offset_text(log['logEndOffset'])}."
        for log in logs
        if log["logStartOffset"] is not None
    ]
    sentences += [_sent(follower_at, log["follower"]) for log in logs if "follower" in log]
    listing = result_listing("Snapshots", source, ListedSnapshot, rows, summary)
    listing = replace(listing, columns=(_FILE, *listing.columns))
    return view.show(listing, findings, sentences=sentences if view.is_table else ())


def _offset_text(offset: int | None) -> object:
    return "an offset that damage hides" if offset is None else offset


def _offset_and_epoch(text: str) -> tuple[int, int]:
    match = _OFFSET_AND_EPOCH.fullmatch(text)
    if match is None or int(match[1]) > GREATEST_INT64 or int(match[2]) > GREATEST_INT32:
        raise TieredctlError(ErrorCode.USAGE, f"--follower-at {text!r:.60} is not OFFSET:EPOCH.")
    return int(match[1]), int(match[2])


def _sent(follower_at: str | None, answer: Document) -> str:
    what = {
        Answer.RECORDS: f"records from offset {answer['endOffset']} on",
        Answer.SNAPSHOT: f"the snapshot {answer['endOffset']}-{answer['epoch']}",
        Answer.DIVERGING: f"no records: truncate to offset {answer['endOffset']} of epoch {answer['epoch']}",
    }
    return f"A follower at {follower_at} is sent {what[Answer(answer['answer'])]} ({answer['reason']})."
