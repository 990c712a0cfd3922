"""How a plan that was written is shown, whatever decided about its objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.cli.findings.remedies import next_command
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.view import View
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.pasteable import pasteable
from tieredctl.model.quantities import size_text
from tieredctl.model.removal import PlanTotals
from tieredctl.ops.documents import Document

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.limits import PlannedSoFar

_OFFLINE = (" --log-dir ", " --export ", " --metadata-source ")
_WITHOUT_CLUSTER = "--offline-metadata"
_FIELDS = ("cause", "objects", "bytes")
_COLUMNS = (TableColumn("CAUSE", "cause"), TableColumn("OBJECTS", "objects"), size_column("bytes"))


def show_plan(
    view: View,
    source: Document,
    planned: PlannedSoFar,
    totals: PlanTotals,
    to: Path,
    command: str,
    *,
    dry_run: bool,
    silence: str | None = None,
) -> ExitCode:
    """`command` applies it; after a dry run there is nothing to apply. `silence` is why it may lack something.

    A plan of more than its options allow is shown too, with exit code 3: `command` refuses it as it is.
    """
    options = planned.options
    excess = _Excess.of(totals, options.max_percent)
    summary = {
        "planId": options.plan_id,
        "mode": options.mode.value,
        "planned": totals.objects + totals.uploads,
        "bytes": totals.bytes,
        "uploads": totals.uploads,
        "left": planned.left,
        "listed": totals.listed_objects,
        "dryRun": dry_run,
        "neededPercent": None if excess is None else excess.needed_percent,
    }
    rows = [
        {"cause": cause, "objects": one.objects, "bytes": one.bytes}
        for cause, one in sorted(planned.by_cause.items(), key=lambda item: -item[1].bytes)
    ]
    view.say(*_sentences(totals, planned.left, to, None if dry_run else command, excess))
    listing = Listing("RemovalPlan", source, rows, _COLUMNS, summary, _FIELDS)
    code = ExitCode.CLEAN if excess is None else ExitCode.FINDINGS
    code = view.show(listing, code=code if silence is None else ExitCode.INCOMPLETE)
    view.say(*([] if silence is None else [silence]))
    return code


@dataclass(frozen=True, slots=True)
class _Excess:
    """A plan that is refused as it is, since it has more of a store than allowed."""

    max_percent: float
    needed_percent: int

    @classmethod
    def of(cls, totals: PlanTotals, max_percent: float) -> _Excess | None:
        # What decides about removals is loaded by commands that plan them.
        from tieredctl.ops.orphan_removal.limits import enough_percent, is_too_large

        share = (totals.objects, totals.listed_objects)
        return cls(max_percent, enough_percent(*share)) if is_too_large(*share, max_percent) else None


def _sentences(totals: PlanTotals, left: int, to: Path, command: str | None, excess: _Excess | None) -> Iterator[str]:
    objects = counted(totals.listed_objects, "object")
    if not totals.objects and not totals.uploads:
        yield f"Nothing to remove among {objects}: {to} {'would not be' if command is None else 'is not'} written."
        return
    what = f"{totals.objects} of {objects}, {size_text(totals.bytes)}"
    if totals.uploads:
        what += f", and {counted(totals.uploads, 'upload')}"
    if left:
        what += f" ({left} more left for another plan)"
    if excess is not None:
        what += f": more than {excess.max_percent:g} %, so that it is not applied as it is"
    if command is None:
        yield f"Would plan, in {to}, to remove {what}."
        return
    template, file = f"tieredctl {command} {{file}} …", {"file": to}
    if excess is not None:
        template += f" --max-percent {excess.needed_percent}"
    following = next_command(pasteable(template, file))
    is_offline = any(option in following for option in _OFFLINE)
    if is_offline and _WITHOUT_CLUSTER not in following:
        following = next_command(pasteable(f"{template} {_WITHOUT_CLUSTER}", file))
    if excess is None:
        yield f"Planned to remove {what}. Apply it with: {following}"
    else:
        yield f"Planned to remove {what}."
        noun = command.removesuffix(" apply")
        yield f"Look at it first: {pasteable(f'tieredctl {noun} show {{file}}', file)}"
        yield f"If all of it should go, apply it with: {following}"
    if is_offline:
        yield "That is for a cluster that no longer exists; for one that does, give --bootstrap-server instead."
