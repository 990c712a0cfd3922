"""`tieredctl orphans purge`: a removal made final."""

from __future__ import annotations

from tieredctl.cli.arguments import clock_ms
from tieredctl.cli.commands.removal_outcome import demand_source
from tieredctl.cli.commands.removal_purge import age_in_quarantine_ms, purge_copies
from tieredctl.cli.options import ClusterId, OfflineMetadata
from tieredctl.cli.places import MetadataOptions, RemoteOptions, TopicListOptions
from tieredctl.cli.removal_options import PurgeOptions
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError

_WHICH_TOPICS = " Give --live-topic-ids or --kraft-snapshot to purge what deleted topics left."


def purge(
    *,
    how: PurgeOptions,
    metadata_options: MetadataOptions,
    offline_metadata: OfflineMetadata = False,
    topic_lists: TopicListOptions,
    remote_options: RemoteOptions,
    cluster_id: ClusterId = None,
    view: ProgressView,
) -> ExitCode:
    """Permanently delete old quarantined objects that are still orphaned (exit 4 if some are not).

    For example: tieredctl orphans purge --older-than 14d --bootstrap-server broker:9092 --store s3://kafka-tiered
    """
    from tieredctl.wiring.orphan_removal import quarantine_purge

    if remote_options.store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "No store was given, so there is no quarantine to purge.")
    older_than_ms = age_in_quarantine_ms(how)
    demand_source(
        metadata_options.bootstrap_server, offline_metadata=offline_metadata, are_listed=topic_lists.are_given
    )
    place = metadata_options.place()
    topics = topic_lists.beside(place).or_logs_of(place)
    if alone := topics.lone_witness():
        view.say(alone)
    purge = quarantine_purge(
        *(remote_options.place(), place),
        topics,
        cluster_id=cluster_id,
        older_than_ms=older_than_ms,
        max_percent=how.max_percent,
        clock_ms=clock_ms,
    )
    advice = "" if topic_lists.are_given or metadata_options.bootstrap_server else _WHICH_TOPICS
    return purge_copies(purge, how, cluster_id, view, advice)
