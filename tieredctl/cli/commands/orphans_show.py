"""`tieredctl orphans show`: what a plan would remove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.config.plan_key import known_key
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.model.removal import Planned, PlannedObject
from tieredctl.model.result_row import Column, JsonOnly, Quantity, ResultRow, Wide

# `orphans scan` loads this module for the verb's name: what it does is loaded when it is typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.plan_file import PlanFile


@dataclass(frozen=True, slots=True)
class _PlannedRow(ResultRow):
    """An object, or an upload, which has no status, cause and evidence."""

    key: Annotated[str, Column(importance=2, after="cause")]
    size: Annotated[int, Column("SIZE", Quantity.SIZE, after="last_modified")]
    last_modified: Annotated[str | None, Column("MODIFIED", Quantity.MOMENT)]
    status: Wide[str | None] = None
    cause: str | None = None
    upload_id: Wide[str | None] = None
    evidence: JsonOnly[object] = None


def show(
    *,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", parser=given_path, help="The file that `orphans plan` wrote.")
    ],
    view: ProgressView,
) -> ExitCode:
    """Show what a plan would remove, by its file alone: `apply` decides again about each object. Changes nothing.

    For example: tieredctl orphans show orphans.plan
    """
    from tieredctl.ops.orphan_removal.plan_file import read_plan

    contents = read_plan(plan, known_key())
    header, totals = contents.header, contents.totals
    summary = {
        "planId": header.plan_id,
        "clusterId": header.cluster_id,
        "mode": header.mode.value,
        "signed": contents.is_signed,
        "planned": totals.objects + totals.uploads,
        "bytes": totals.bytes,
        "uploads": totals.uploads,
        "listed": totals.listed_objects,
        "createdMs": header.created_ms,
        "validUntilMs": header.valid_until_ms,
    }
    source = {"kind": "plan", "path": str(plan), "store": header.store, "layout": header.layout}
    listing = result_listing("RemovalPlanContents", source, _PlannedRow, _rows(contents), summary)
    return view.show(listing, sentences=[_sentence(contents)])


def _rows(plan: PlanFile) -> Iterator[_PlannedRow]:
    return (_row(planned) for planned in plan.planned())


def _row(planned: Planned) -> _PlannedRow:
    from tieredctl.ops.remote.inventory import iso_8601

    if isinstance(planned, PlannedObject):
        modified = iso_8601(planned.last_modified_ms)
        return _PlannedRow(
            planned.key, planned.size, modified, planned.status, planned.cause, evidence=planned.evidence
        )
    return _PlannedRow(planned.key, planned.size, iso_8601(planned.initiated_ms), upload_id=planned.upload_id)


def _sentence(plan: PlanFile) -> str:
    header, totals = plan.header, plan.totals
    what = f"{totals.objects} of {counted(totals.listed_objects, 'object')}, {size_text(totals.bytes)}"
    if totals.uploads:
        what += f", and {counted(totals.uploads, 'upload')}"
    signed = "" if plan.is_signed else " It is not signed with your key."
    return f"Plan {header.plan_id} removes {what} from {header.store} ({header.mode.value}).{signed}"
