"""Options of the commands that read coordinators' logs."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32
from tieredctl.cli.output import TableColumn
from tieredctl.ops.documents import Document

OneCoordinator = Annotated[
    int | None,
    typer.Option(
        "--metadata-partition",
        metavar="NUMBER",
        help="Only this partition of __diskless_metadata.",
        min=0,
        max=GREATEST_INT32,
    ),
]
COORDINATOR = TableColumn("COORDINATOR", "metadataPartition", importance=0)


def last_records(coordinators: list[Document]) -> str:
    """How late the coordinators' logs are."""
    newest = max((one["lastRecordAt"] for one in coordinators if one["lastRecordAt"] is not None), default=None)
    if newest is None:
        return "How late the logs are is unknown."
    return f"The logs' last record is of {newest}; what a coordinator did since is not in them."
