"""`tieredctl orphans purge`: a removal made final."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, duration_ms, pairs, percentage
from tieredctl.cli.change import View
from tieredctl.cli.commands.removal_outcome import (
    FIELDS,
    DeleteVersions,
    demand_source,
    opened_store,
    what_stays,
)
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.options import (
    BootstrapServer,
    ClusterId,
    CommandConfig,
    DryRun,
    Export,
    KraftSnapshot,
    LayoutName,
    LayoutOptions,
    LiveTopicIds,
    LogDirs,
    MetricsFile,
    NoLease,
    OfflineMetadata,
    Output,
    Quiet,
    Store,
    StoreOptions,
    Yes,
)
from tieredctl.cli.output import Listing, OutputFormat
from tieredctl.cli.places import metadata_place
from tieredctl.config.plan_key import usable_key
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.layouts.protocol import AUTO
from tieredctl.layouts.registry import layout_in
from tieredctl.wiring.places import TopicsPlace

_WHICH_TOPICS = " Give --live-topic-ids or --kraft-snapshot to purge what topics left that are gone."


def purge(
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Delete what has been in quarantine for longer: 7d.")
    ],
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow an --older-than below 1h: nothing can be undone then.")
    ] = False,
    max_percent: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            parser=percentage,
            help="Refuse to delete more of the store's objects, those in quarantine included.",
        ),
    ] = 10.0,
    log_dir: LogDirs = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    export: Export = None,
    offline_metadata: OfflineMetadata = False,
    live_topic_ids: LiveTopicIds = None,
    kraft_snapshot: KraftSnapshot = None,
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    no_lease: NoLease = False,
    delete_versions: DeleteVersions = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Delete for good what has been in quarantine for long, and is still nobody's: exit 4 if something is not."""
    from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
    from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
    from tieredctl.ops.orphan_removal.purge import LEAST_AGE_MS, Purge

    if store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "There is no store to empty the quarantine of.")
    if duration_ms(older_than) < LEAST_AGE_MS and not allow_young:
        message = "What has been in quarantine for less than an hour is not deleted for good."
        raise TieredctlError(
            ErrorCode.AGE_TOO_LOW, message, hint="Give an --older-than of 1h or more, or --allow-young."
        )
    demand_source(bootstrap_server, offline_metadata=offline_metadata, topics=live_topic_ids or kraft_snapshot)
    place = metadata_place(log_dir, bootstrap_server, command_config, export)
    place.demand_topic_based()
    followed = FollowedMetadata(place.open_source)
    known_cluster_id = followed.cluster_id = followed.source().cluster_id or cluster_id
    if known_cluster_id is None:
        raise TieredctlError(
            ErrorCode.USAGE, "The metadata does not tell which cluster it is of.", hint="Give --cluster-id."
        )
    if not dry_run:
        what = f"The deletion for good of what has been in the quarantine of {store} for {older_than}"
        demand_confirmation(what, known_cluster_id, yes=yes, typed_cluster_id=cluster_id)
    opened = opened_store(store, store_option, dry_run=dry_run)
    with TopicsPlace.beside(place, live_topic_ids, kraft_snapshot).open() as topics, closing(followed):
        metadata = FreshMetadata(
            followed,
            layout=layout_in(opened, layout, pairs("--layout-option", layout_option)),
            min_age_ms=0,
            topic_sources=topics,
            clock_ms=clock_ms,
        )
        age_ms = duration_ms(older_than)
        purging = Purge(opened, metadata, known_cluster_id, age_ms, clock_ms, no_lease, max_percent, delete_versions)
        purging.key = usable_key()
        outcome = purging.rehearse() if dry_run else purging.run()
    stays = what_stays(opened, outcome)
    verb = "Would delete" if dry_run else "Deleted"
    done = outcome.planned - outcome.skipped if dry_run else outcome.done
    for_good = "" if stays.may_stay else " for good"
    view = View(output, quiet, metrics_file)
    view.say(
        f"{verb} {done} of {outcome.planned} objects in the quarantine of {opened.url}{for_good}.", *stays.sentences()
    )
    if outcome.unproven:
        unproven = f"{outcome.unproven} more copies were kept: nothing tells which cluster they are of."
        view.say(f"{unproven} Put them back with `tieredctl orphans restore`, or delete them yourself.")
    if unclear := outcome.skipped - len(outcome.owned):
        hint = "" if live_topic_ids or kraft_snapshot or bootstrap_server else _WHICH_TOPICS
        view.say(f"{unclear} copies were kept: what they are copies of has an owner, or may have one.{hint}")
    source = {"clusterId": known_cluster_id, "store": opened.url}
    kept = {"unproven": outcome.unproven, "stays": stays.document(), "dryRun": dry_run}
    return view.end(Listing("Purge", source, (), (), outcome.counts() | kept, FIELDS), outcome)
