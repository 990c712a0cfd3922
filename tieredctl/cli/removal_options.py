"""The options of planning and applying a removal that do not depend on what decides whose objects are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tieredctl.cli.arguments import objects_a_second, percentage
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import DryRun, NoLease, Yes
from tieredctl.model.counted import counted
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.quantities import size_text
from tieredctl.model.removal import RemovalMode
from tieredctl.ops.documents import Document

PurgeShare = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        parser=percentage,
        help="Refuse to delete more than this share of the store's objects, including those in quarantine.",
    ),
]
AllowYoung = Annotated[
    bool, typer.Option("--allow-young", help="Allow a --min-age below 1h; only if nothing writes to the store.")
]
DeleteVersions = Annotated[
    bool,
    typer.Option(
        "--delete-versions",
        help="In a bucket with versioning, also delete noncurrent versions and delete markers.",
    ),
]


@dataclass(frozen=True, slots=True)
class PlanSizeOptions(OptionGroup):
    """How a plan is made, how much of a store it may have, and for how long it may be applied."""

    delete: Annotated[bool, typer.Option("--delete", help="Delete permanently instead of moving to quarantine.")] = (
        False
    )
    max_percent: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", parser=percentage, help="Refuse to plan more than this share of the store's objects."
        ),
    ] = 10.0
    max_missing: Annotated[
        int,
        typer.Option(metavar="NUMBER", help="Refuse to plan where more promised objects than this are missing.", min=0),
    ] = 0
    max_objects: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Plan at most this many objects; leave the rest.", min=0)
    ] = None
    max_bytes: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Plan at most this many bytes; leave the rest.", min=0)
    ] = None
    valid_for: Annotated[str, typer.Option(metavar="DURATION", help="How long the plan may be applied.")] = "24h"
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan.")] = False
    dry_run: DryRun = False

    @property
    def mode(self) -> RemovalMode:
        return RemovalMode.DELETE if self.delete else RemovalMode.QUARANTINE


@dataclass(frozen=True, slots=True)
class ApplyLimitOptions(OptionGroup):
    """What may be removed, whatever the plan says."""

    min_age: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Remove nothing younger than this; by default the plan's own, or 24h."),
    ] = None
    allow_young: AllowYoung = False
    max_percent: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            parser=percentage,
            help="Refuse to remove more than this share of the store's objects; by default the plan's own, or 10.",
        ),
    ] = None
    max_missing: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Refuse where more promised objects than this are missing; by default the plan's own, or 0.",
            min=0,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ApplyOptions(OptionGroup):
    """How a plan is applied."""

    receipts: Annotated[
        str | None,
        typer.Option(metavar="FILE|store", help="Where to record what was removed; PLAN.receipts by default."),
    ] = None
    trust_plan: Annotated[
        bool, typer.Option("--trust-plan", help="Apply a plan that was not signed with your key.")
    ] = False
    delete: Annotated[
        bool,
        typer.Option("--delete", help="Delete permanently, as a plan says that was not signed with your key."),
    ] = False
    rate: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", parser=objects_a_second, help="At most this many objects per second."),
    ] = None
    yes: Yes = False
    dry_run: DryRun = False
    no_lease: NoLease = False
    delete_versions: DeleteVersions = False


@dataclass(frozen=True, slots=True)
class PurgeOptions(OptionGroup):
    """Which copies are deleted for good, and how."""

    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Delete what has been in quarantine for longer than this.")
    ]
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow an --older-than below 1h; nothing can be undone then.")
    ] = False
    max_percent: PurgeShare = 10.0
    yes: Yes = False
    dry_run: DryRun = False
    no_lease: NoLease = False
    delete_versions: DeleteVersions = False


def young_sentence(summary: Document, min_age: str) -> str:
    """How many objects of a scan are not owned, but too young to be orphaned; and what shows them, unless others are.
    Empty without any. `min_age` as it was typed."""
    hint = "" if summary["status"][ObjectStatus.ORPHAN]["objects"] else ": a lower one shows what is orphaned"
    return _sentence(summary, f"younger than --min-age {min_age}{hint}")


def not_older_sentence(summary: Document, min_age: str) -> str:
    """The sentence about objects that are not older, by `min_age`, than the oldest object that is needed."""
    return _sentence(summary, f"not older than the oldest needed object by --min-age {min_age}")


def _sentence(summary: Document, how: str) -> str:
    younger = summary["younger"]
    if not younger["objects"]:
        return ""
    are = "is" if younger["objects"] == 1 else "are"
    objects = f"{counted(younger['objects'], 'object')} that {are} not owned, {size_text(younger['bytes'])},"
    return f"{objects} {are} {how}."
