"""Copies in quarantine that are deleted for good, and how that is shown, whatever decides about their originals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieredctl.cli.commands.removal_outcome import FIELDS
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.output import Listing
from tieredctl.cli.removal_options import PurgeOptions
from tieredctl.cli.shown_quantities import ago
from tieredctl.cli.view import View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, size_text

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.wiring.orphan_removal import QuarantinePurge


def age_in_quarantine_ms(how: PurgeOptions) -> int:
    """How long a copy has to have been there. Raises TieredctlError `age-too-low` if nobody could have noticed."""
    from tieredctl.ops.orphan_removal.purge import LEAST_AGE_MS

    age_ms = duration_ms(how.older_than)
    if age_ms < LEAST_AGE_MS and not how.allow_young:
        message = "Objects that entered quarantine less than an hour ago are not deleted."
        hint = "Give an --older-than of 1h or more, or --allow-young."
        raise TieredctlError(ErrorCode.AGE_TOO_LOW, message, hint=hint)
    return age_ms


def purge_copies(
    purge: QuarantinePurge, how: PurgeOptions, cluster_id: str | None, view: View, advice: str = ""
) -> ExitCode:
    """Asks, deletes them or only counts them, and shows what was done; `advice` where an owner is unclear."""
    dry_run = how.dry_run
    if dry_run:
        purged = purge.rehearse()
    else:
        what = f"Permanently deleting what has been in the quarantine of {purge.store.url} for {how.older_than}"
        demand_confirmation(what, purge.cluster_id, yes=how.yes, typed_cluster_id=cluster_id)
        purged = purge.apply(without_lease=how.no_lease, with_versions=how.delete_versions)
    outcome, stays = purged.outcome, purged.stays
    verb = "Would delete" if dry_run else "Deleted"
    done = outcome.planned - outcome.skipped if dry_run else outcome.done
    for_good = "" if stays.may_stay else " for good"
    view.say(
        f"{verb} {done} of {outcome.planned} objects in the quarantine of {purged.url}{for_good}.", *stays.sentences()
    )
    if outcome.young and outcome.oldest_young_ms is not None:
        waiting = f"{counted(outcome.young, 'copy', 'copies')}, {size_text(outcome.young_bytes)}"
        view.say(f"Not {how.older_than} old yet: {waiting}; the oldest came {ago(outcome.oldest_young_ms)}.")
    if outcome.unproven:
        unproven = counted(outcome.unproven, "more copy was", "more copies were")
        advised = "Put them back with `tieredctl orphans restore`, or delete them yourself."
        view.say(f"{unproven} kept: their cluster is unknown. {advised}")
    if unclear := outcome.skipped - len(outcome.owned):
        copies = counted(unclear, "copy was", "copies were")
        view.say(f"{copies} kept, since the original has an owner, or may have one.{advice}")
    source = {"clusterId": purge.cluster_id, "store": purged.url}
    kept = {"young": outcome.young, "unproven": outcome.unproven, "stays": stays.document(), "dryRun": dry_run}
    return view.end(Listing("Purge", source, (), (), outcome.counts() | kept, FIELDS), outcome)
