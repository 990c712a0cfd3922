"""`tieredctl orphans apply`: applies a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, kafka_id
from tieredctl.cli.commands.removal_application import apply_plan, chosen_plan
from tieredctl.cli.commands.removal_outcome import demand_source
from tieredctl.cli.context_in_use import Role, details_of
from tieredctl.cli.options import (
    BootstrapServer,
    ClusterId,
    CommandConfig,
    Export,
    LayoutOptions,
    LogDirs,
    MetadataSource,
    MetadataSourceOptions,
    OfflineMetadata,
    TieredStoreOptions,
)
from tieredctl.cli.places import MetadataOptions, RemoteOptions, TopicListOptions
from tieredctl.cli.removal_options import ApplyLimitOptions, ApplyOptions
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ExitCode


def apply(
    *,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", parser=given_path, help="The file that `orphans plan` wrote.")
    ],
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    offline_metadata: OfflineMetadata = False,
    log_dir: LogDirs = None,
    export: Export = None,
    metadata_source: MetadataSource = None,
    metadata_source_option: MetadataSourceOptions = None,
    topic_lists: TopicListOptions,
    store_option: TieredStoreOptions = None,
    layout_option: LayoutOptions = None,
    limits: ApplyLimitOptions,
    foreign: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC-ID", parser=kafka_id, help="Also remove what is planned of this topic; repeatable."
        ),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Also remove this planned object, which no layout explains; repeatable."),
    ] = None,
    cluster_id: ClusterId = None,
    how: ApplyOptions,
    view: ProgressView,
) -> ExitCode:
    """Apply a plan, or resume an interrupted one: each object is checked again before it is removed.

    The plan is not trusted: only objects that are orphaned now are removed; foreign and unknown objects only if they
    are named. Exit 5 if something was skipped, failed, or stopped the run.

    For example: tieredctl orphans apply orphans.plan --bootstrap-server broker:9092
    """
    from tieredctl.wiring.orphan_removal import TieredOwners

    chosen = chosen_plan(plan, limits, how, view, foreign or (), unknown or ())
    demand_source(bootstrap_server, offline_metadata=offline_metadata, are_listed=topic_lists.are_given)
    place = MetadataOptions(
        log_dir, bootstrap_server, command_config, export, metadata_source, metadata_source_option
    ).place()
    url = chosen.header.store
    store_options = details_of(url, Role.STORE_OPTIONS, store_option)
    layout_options = details_of(url, Role.LAYOUT_OPTIONS, layout_option)
    store = RemoteOptions(url, store_options, chosen.header.layout, layout_options).place()
    topics = topic_lists.beside(place).or_logs_of(place)
    if alone := topics.lone_witness():
        view.say(alone)
    owners = TieredOwners(place, topics)
    return apply_plan(chosen, store, owners, how, cluster_id, clock_ms, view)
