"""`tieredctl orphans purge`: a removal made final."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, percentage
from tieredctl.cli.commands.removal_outcome import (
    FIELDS,
    DeleteVersions,
    demand_source,
)
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.options import ClusterId, DryRun, NoLease, OfflineMetadata, Yes
from tieredctl.cli.output import Listing
from tieredctl.cli.places import MetadataOptions, RemoteOptions, TopicListOptions
from tieredctl.cli.view import View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms

_WHICH_TOPICS = " Give --live-topic-ids or --kraft-snapshot to purge what deleted topics left."


def purge(
    *,
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Delete what has been in quarantine for longer than this.")
    ],
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow an --older-than below 1h; nothing can be undone then.")
    ] = False,
    max_percent: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            parser=percentage,
            help="Refuse to delete more than this share of the store's objects, including those in quarantine.",
        ),
    ] = 10.0,
    metadata_options: MetadataOptions,
    offline_metadata: OfflineMetadata = False,
    topic_lists: TopicListOptions,
    remote_options: RemoteOptions,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    no_lease: NoLease = False,
    delete_versions: DeleteVersions = False,
    view: View,
) -> ExitCode:
    """Permanently delete old quarantined objects that are still orphaned (exit 4 if some are not)."""
    from tieredctl.ops.orphan_removal.purge import LEAST_AGE_MS
    from tieredctl.wiring.orphan_removal import quarantine_purge

    if remote_options.store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "No store was given, so there is no quarantine to purge.")
    age_ms = duration_ms(older_than)
    if age_ms < LEAST_AGE_MS and not allow_young:
        message = "Objects that entered quarantine less than an hour ago are not deleted."
        hint = "Give an --older-than of 1h or more, or --allow-young."
        raise TieredctlError(ErrorCode.AGE_TOO_LOW, message, hint=hint)
    demand_source(
        metadata_options.bootstrap_server, offline_metadata=offline_metadata, are_listed=topic_lists.are_given
    )
    place = metadata_options.place()
    with quarantine_purge(
        *(remote_options.place(), place),
        topic_lists.beside(place),
        cluster_id=cluster_id,
        older_than_ms=age_ms,
        max_percent=max_percent,
        clock_ms=clock_ms,
    ) as purge:
        if dry_run:
            purged = purge.rehearse()
        else:
            what = f"Permanently deleting what has been in the quarantine of {remote_options.store} for {older_than}"
            demand_confirmation(what, purge.cluster_id, yes=yes, typed_cluster_id=cluster_id)
            purged = purge.apply(without_lease=no_lease, with_versions=delete_versions)
    outcome, stays = purged.outcome, purged.stays
    verb = "Would delete" if dry_run else "Deleted"
    done = outcome.planned - outcome.skipped if dry_run else outcome.done
    for_good = "" if stays.may_stay else " for good"
    view.say(
        f"{verb} {done} of {outcome.planned} objects in the quarantine of {purged.url}{for_good}.", *stays.sentences()
    )
    if outcome.unproven:
        unproven = counted(outcome.unproven, "more copy was", "more copies were")
        how = "Put them back with `tieredctl orphans restore`, or delete them yourself."
        view.say(f"{unproven} kept: their cluster is unknown. {how}")
    if unclear := outcome.skipped - len(outcome.owned):
        hint = "" if topic_lists.are_given or metadata_options.bootstrap_server else _WHICH_TOPICS
        copies = counted(unclear, "copy was", "copies were")
        view.say(f"{copies} kept, since the original has an owner, or may have one.{hint}")
    source = {"clusterId": purge.cluster_id, "store": purged.url}
    kept = {"unproven": outcome.unproven, "stays": stays.document(), "dryRun": dry_run}
    return view.end(Listing("Purge", source, (), (), outcome.counts() | kept, FIELDS), outcome)
