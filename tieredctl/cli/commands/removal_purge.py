"""Copies in quarantine that are deleted for good, and how that is shown, whatever decides about their originals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tieredctl.cli.commands.removal_outcome import ReceiptRow
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.removal_options import PurgeOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.shown_quantities import ago
from tieredctl.cli.view import View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.model.quantities import duration_ms, size_text

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.purge import PurgeOutcome
    from tieredctl.wiring.orphan_removal import Purged, QuarantinePurge


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
    """Looks what there is, asks if there is anything, deletes it or only counts it, and shows what was done; `advice`
    where an owner is unclear."""
    demand_same_cluster(purge.cluster_id, cluster_id)
    rehearsed = None if how.yes and cluster_id is not None and not how.dry_run else purge.rehearse()
    sentences = [] if rehearsed is None else [*_kept(rehearsed.outcome, how, advice)]
    if rehearsed is not None and (how.dry_run or not rehearsed.outcome.found):
        purged = rehearsed
    else:
        view.say(*sentences)
        demand_confirmation(_what(purge, how, rehearsed), purge.cluster_id, yes=how.yes, typed_cluster_id=cluster_id)
        shown = None if rehearsed is None else rehearsed.outcome
        purged = purge.apply(shown, without_lease=how.no_lease, with_versions=how.delete_versions)
        sentences = [one for one in _kept(purged.outcome, how, advice) if one not in sentences]
    outcome, stays = purged.outcome, purged.stays
    view.say(_headline(purged, how), *stays.sentences(), *sentences)
    source = {"clusterId": purge.cluster_id, "store": purged.url}
    kept = {"young": outcome.young, "replaced": outcome.replaced, "unproven": outcome.unproven}
    summary = outcome.counts() | kept | {"stays": stays.document(), "dryRun": how.dry_run}
    return view.end(result_listing("Purge", source, ReceiptRow, (), summary), outcome)


def unproven_sentence(copies: int) -> str:
    """That copies are kept since nothing says whose they are, and what to do."""
    advised = "Put them back with `tieredctl orphans restore`, or delete them yourself."
    return f"{counted(copies, 'more copy was', 'more copies were')} kept: their cluster is unknown. {advised}"


def _what(purge: QuarantinePurge, how: PurgeOptions, rehearsed: Purged | None) -> str:
    where = f"the quarantine of {purge.store.url}"
    if rehearsed is None:
        return f"Permanently deleting what has been in {where} for {how.older_than}"
    copies = counted(rehearsed.outcome.found, "copy", "copies")
    amount = f"{copies}, {size_text(rehearsed.outcome.found_bytes)}, in {where}"
    return f"Permanently deleting {amount} for {how.older_than} or longer"


def _headline(purged: Purged, how: PurgeOptions) -> str:
    outcome = purged.outcome
    if not outcome.planned and outcome.stopped is None:
        return f"Nothing to delete: no copy has been in the quarantine of {purged.url} for {how.older_than}."
    verb, done = ("Would delete", outcome.found) if how.dry_run else ("Deleted", outcome.done)
    for_good = "" if purged.stays.may_stay else " for good"
    return f"{verb} {done} of {outcome.planned} objects in the quarantine of {purged.url}{for_good}."


def _kept(outcome: PurgeOutcome, how: PurgeOptions, advice: str) -> Iterator[str]:
    """What stays, and why."""
    if outcome.young and outcome.oldest_young_ms is not None:
        waiting = f"{counted(outcome.young, 'copy', 'copies')}, {size_text(outcome.young_bytes)}"
        yield f"Not {how.older_than} old yet: {waiting}; the oldest came {ago(outcome.oldest_young_ms)}."
    if outcome.unproven:
        yield unproven_sentence(outcome.unproven)
    if outcome.replaced:
        copies = counted(outcome.replaced, "copy was", "copies were")
        yield f"{copies} kept: brokers read what `heal` or others put in their places, until it is deleted."
    if unclear := outcome.skipped - len(outcome.owned):
        copies = counted(unclear, "copy was", "copies were")
        yield f"{copies} kept, since the original has an owner, or may have one.{advice}"
