"""`tieredctl diskless files`."""

from __future__ import annotations

from typing import Annotated

import typer
from tieredctl_inkless.cli.diskless_places import CoordinatorLogsOptions

from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl_proposals.cli.coordinator_options import OneCoordinator, last_records

_NOT_FOUND = "RESOURCE_NOT_FOUND"


def _live(item: Item) -> str:
    if item["error"] is not None:
        return "not found" if item["error"] == _NOT_FOUND else "unknown"
    return "yes" if item["hasLiveBatches"] else "no"


def _numbers(name: str) -> TableColumn:
    return TableColumn(name, lambda item: " ".join(map(str, item[_FIELD_OF[name]])) or None, importance=0)


_FIELD_OF = {"LIVE-AT": "liveAt", "RELEASED-AT": "releasedAt"}
_COLUMNS = (TableColumn("OBJECT", "objectKey"), TableColumn("LIVE-BATCHES", _live), *map(_numbers, _FIELD_OF))
_FIELDS = ("objectKey", "hasLiveBatches", "error", "liveAt", "releasedAt")


def files(
    *,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Objects' keys, as batches name them.")],
    logs: CoordinatorLogsOptions,
    metadata_partition: OneCoordinator = None,
    view: FindingsView,
) -> ExitCode:
    """Show whether files have live batches, as diskless coordinators describe them by their logs (KIP-1164).

    A file that some coordinators know, none of which has live batches, is deleted by the last of its owners. Exit 3 if
    no coordinator knows a file, 5 if a log is missing or not whole: what only that one may know is unknown.
    For example: tieredctl diskless files diskless/j8sPwINeRtKiPiZlT01R0w --log-dir /var/lib/kafka/data
    """
    from tieredctl_proposals.wiring.coordinator_logs import CoordinatorLogsPlace, coordinator_answers

    named = logs.demanded()
    place = CoordinatorLogsPlace(tuple(named.log_dirs), named.coordinators)
    with coordinator_answers(place, metadata_partition) as (source, answers):
        rows = answers.files(keys)
        summary = {
            "files": len(rows),
            "live": sum(row["hasLiveBatches"] is True for row in rows),
            "released": sum(row["hasLiveBatches"] is False for row in rows),
            "notFound": sum(row["error"] == _NOT_FOUND for row in rows),
            "coordinators": answers.coordinators(),
            "findings": finding_documents(answers.findings),
        }
        code = ExitCode.FINDINGS if summary["notFound"] else ExitCode.CLEAN
        listing = Listing("DisklessFiles", source, rows, _COLUMNS, summary, _FIELDS)
        return view.show(listing, answers.findings, code, sentences=[last_records(answers.coordinators())])
