"""`tieredctl doctor …`: what is wrong, or unwise, with tiered storage on a cluster, in settings, or for an upgrade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path, now_ms, pairs
from tieredctl.cli.commands.doctor_connect import connect
from tieredctl.cli.context_in_use import Role
from tieredctl.cli.options import BootstrapController, KraftSnapshot, Now, StuckAfter, TieredStore, TieredStoreOptions
from tieredctl.cli.pages.report import Reported
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import ClusterOptions, RemoteOptions
from tieredctl.cli.view import FindingListView
from tieredctl.errors import DecodeError, ErrorCode, ExitCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release, release
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.diagnosis import Diagnosis, diagnose_file, diagnose_settings
from tieredctl.ops.doctor.gathering import gather_settings
from tieredctl.ops.doctor.release_change import downgrade_findings, upgrade_findings
from tieredctl.ops.doctor.setting_names import has_any_setting
from tieredctl.wiring.bucket import diagnose_store
from tieredctl.wiring.doctor import diagnose_cluster, diagnose_offline
from tieredctl.wiring.places import ClusterPlace, QuorumPlace

_commands = typer.Typer(rich_markup_mode=None)
_commands.command("connect")(connect)
_NO_CLOCK = Clock(0, 0)

KafkaVersion = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION", help="The brokers' release, such as 3.9.1; brokers do not report their patch release."
    ),
]


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@_commands.callback(invoke_without_command=True)
def cluster(
    *,
    context: typer.Context,
    cluster_options: ClusterOptions,
    kraft_snapshot: KraftSnapshot = None,
    kafka_version: KafkaVersion = None,
    older_than: StuckAfter = "1h",
    log_dir: Annotated[
        list[Path] | None,
        typer.Option(
            "--log-dir",
            metavar="DIR",
            parser=given_path,
            help="A broker's or controller's log directory, to check for files that block tiering and for snapshots; "
            "repeat it for several.",
        ),
    ] = None,
    bootstrap_controller: BootstrapController = None,
    remote_options: RemoteOptions,
    now: Now = None,
    view: FindingListView,
    page: ReportOptions,
) -> ExitCode:
    """Check a live cluster without bulk reads: release, settings, the metadata topic; what is stuck, lagging, left over
    or kept twice; which consumer groups read from remote storage. With --store, also check the small objects that new
    followers and read_committed consumers need.

    The controllers' quorum is checked too; with --bootstrap-controller also the leader's latest snapshot, and with
    --log-dir those of the nodes.

    Exit 3 if something needs attention, 5 if something could not be checked.

    For example: tieredctl doctor --bootstrap-server broker:9092
    """
    if context.invoked_subcommand is not None:
        if cluster_options.bootstrap_server is not None:
            raise TieredctlError(ErrorCode.USAGE, f"Put options after `doctor {context.invoked_subcommand}`.")
        return ExitCode.CLEAN
    page.demand_possible()
    clock = Clock(now_ms(now), duration_ms(older_than))
    remote = remote_options.place_if_given()
    place = cluster_options.place_or_snapshot(kraft_snapshot)
    stated, log_dirs = _release(kafka_version), log_dir or ()
    if isinstance(place, ClusterPlace):
        controllers = None
        if bootstrap_controller is not None:
            controllers = QuorumPlace(bootstrap_controller, command_config=cluster_options.command_config)
        diagnosis, source, facts = diagnose_cluster(
            *(place, clock), release=stated, store=remote, log_dirs=log_dirs, controllers=controllers
        )
    elif remote is not None or bootstrap_controller is not None:
        option = "--store" if remote is not None else "--bootstrap-controller"
        message = f"{option} is for a live cluster."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Omit it with --kraft-snapshot.")
    else:
        diagnosis, source, facts = diagnose_offline(place, clock, release=stated, log_dirs=log_dirs)
    return _finish("Doctor", source, diagnosis, view, page, facts)


@_commands.command("config")
def config(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", parser=given_path, help="A broker's or controller's server.properties."),
        Role.ELSEWHERE,
    ] = None,
    topic_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of a topic to be tiered there; repeat it for several."),
    ] = None,
    cluster_options: ClusterOptions,
    kafka_version: KafkaVersion = None,
    view: FindingListView,
    page: ReportOptions,
) -> ExitCode:
    """Check settings only: of a file (for CI too), or of a live cluster's brokers and tiered topics. With both, check
    the file against what the cluster already has, such as the metadata topic's partitions.

    For example: tieredctl doctor config server.properties --kafka-version 4.3.1
    """
    page.demand_possible()
    stated = _release(kafka_version)
    if file is None:
        if topic_config:
            raise TieredctlError(
                ErrorCode.USAGE, "--topic-config is for FILE; a live cluster reports its topics' settings."
            )
        cluster, source = _gathered(cluster_options, stated)
        return _finish("DoctorConfig", source, diagnose_settings(cluster), view, page)
    topic = pairs("--topic-config", topic_config) if topic_config else None
    node = BrokerSettings(file.name, _properties(file), stated)
    source = {"kind": "file", "path": str(file)}
    if cluster_options.bootstrap_server is None:
        diagnosis = diagnose_file(node, topic)
    else:
        cluster, described = _gathered(cluster_options, stated)
        diagnosis = diagnose_file(replace(node, release=cluster.release), topic, cluster)
        source["cluster"] = described
    return _finish("DoctorConfig", source, diagnosis, view, page)


@_commands.command("store")
def store(
    *,
    store: TieredStore = None,
    store_option: TieredStoreOptions = None,
    cluster_options: ClusterOptions,
    now: Now = None,
    view: FindingListView,
    page: ReportOptions,
) -> ExitCode:
    """Check what a bucket's settings do to tiered storage: versions, locks and holds, lifecycle rules and storage
    classes, replication, keys, public access, who pays, unfinished uploads. With a cluster, lifecycle rules are
    compared with what topics retain.

    Changes nothing. Exit 3 if something needs attention, 5 if the store did not report a setting.

    For example: tieredctl doctor store --store s3://kafka-tiered --bootstrap-server broker:9092
    """
    page.demand_possible()
    is_live = cluster_options.bootstrap_server is not None
    if cluster_options.command_config is not None and not is_live:
        raise TieredctlError(ErrorCode.USAGE, "--command-config is for --bootstrap-server.")
    bucket = RemoteOptions(store, store_option).place()
    diagnosis, source = diagnose_store(bucket, cluster_options.place() if is_live else None, now_ms(now))
    return _finish("DoctorStore", source, diagnosis, view, page)


@_commands.command("upgrade")
def upgrade(
    old: Annotated[str, typer.Argument(metavar="FROM", help="The current release, such as 3.9.1.")],
    new: Annotated[str, typer.Argument(metavar="TO", help="The target release.")],
    view: FindingListView,
    page: ReportOptions,
) -> ExitCode:
    """Show what tiered storage needs before an upgrade, and what changes.

    For example: tieredctl doctor upgrade 3.9.1 4.3.1
    """
    return _finish_change("DoctorUpgrade", upgrade_findings, old, new, view, page)


@_commands.command("downgrade")
def downgrade(
    new: Annotated[str, typer.Argument(metavar="FROM", help="The current release, such as 4.3.1.")],
    old: Annotated[str, typer.Argument(metavar="TO", help="The target release.")],
    view: FindingListView,
    page: ReportOptions,
) -> ExitCode:
    """Show what tiered storage needs before a downgrade, and what is lost.

    For example: tieredctl doctor downgrade 4.3.1 3.9.1
    """
    return _finish_change("DoctorDowngrade", downgrade_findings, new, old, view, page)


def _finish_change(
    kind: str,
    judge: Callable[[Release, Release], list[Finding]],
    before: str,
    after: str,
    view: FindingListView,
    page: ReportOptions,
) -> ExitCode:
    page.demand_possible()
    pair = {"from": str(release(before)), "to": str(release(after))}
    diagnosis = Diagnosis(pair, judge(release(before), release(after)))
    return _finish(kind, {"kind": "releases", **pair}, diagnosis, view, page)


def _finish(
    kind: str,
    source: dict[str, object],
    diagnosis: Diagnosis,
    view: FindingListView,
    page: ReportOptions,
    facts: ClusterSnapshot | None = None,
) -> ExitCode:
    code = view.show_findings(kind, source, diagnosis.findings, diagnosis.summary(), _headline(diagnosis))
    return page.write(code, lambda: _reported(source, diagnosis, view, facts))


def _reported(
    source: dict[str, object], diagnosis: Diagnosis, view: FindingListView, facts: ClusterSnapshot | None
) -> Reported:
    from tieredctl.cli.pages.report_plots import findings_plot, topics_plot, uploads_plot
    from tieredctl.cli.pages.timeline_plots import sentences_of_not_drawn, timeline_plots
    from tieredctl.ops.status.facts import facts_of_cluster
    from tieredctl.ops.timeline.partition_timeline import NOTHING_DRAWN, logs_of_leaders, timelines_of_found

    plots, timelines = [findings_plot(diagnosis.findings)], NOTHING_DRAWN
    if facts is not None:
        timelines = timelines_of_found(facts.stores, diagnosis.findings, facts.odd, logs_of_leaders(facts.partitions))
    segments = None if facts is None else facts_of_cluster(facts, None, diagnosis.findings).segments
    if segments is not None:
        plots += [topics_plot(segments.topics, may_be_more=False), uploads_plot(segments.uploads)]
    shown = [*(plot for plot in plots if plot is not None), *timeline_plots(timelines.drawn)]
    not_drawn = list(sentences_of_not_drawn(timelines.left_out))
    return Reported(
        source, diagnosis.findings, _headline(diagnosis), unknown=not_drawn, plots=shown, tolerance=view.tolerance
    )


def _headline(diagnosis: Diagnosis) -> str:
    grave = sum(finding.severity is not Severity.INFO for finding in diagnosis.findings)
    hints = len(diagnosis.findings) - grave
    need = counted(grave, "needs", "need") if grave else "nothing needs"
    looked_at = ", ".join(f"{name}={value}" for name, value in diagnosis.looked_at.items() if value is not None)
    return f"Looked at {looked_at}: {need} attention, {hints} informational."


def _gathered(cluster_options: ClusterOptions, stated: Release | None) -> tuple[ClusterSnapshot, dict[str, object]]:
    """A live cluster's settings, and what it is."""
    with cluster_options.place().open() as opened:
        return gather_settings(opened, _NO_CLOCK, stated), opened.describe()


def _release(text: str | None) -> Release | None:
    return None if text is None else release(text)


def _properties(file: Path) -> dict[str, str]:
    from tieredctl.formats.java_properties import LARGEST_PROPERTIES_FILE, read_properties

    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST_PROPERTIES_FILE + 1)
        if len(data) > LARGEST_PROPERTIES_FILE:
            message = f"{file} is far too large for a properties file"
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give a file of name=value lines.")
        stated = read_properties(data)
        if not has_any_setting(stated):
            message = f"{file} has no setting of a broker or controller"
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give a server.properties.")
        return stated
    except DecodeError as error:
        message = f"{file} is not a properties file: {error.message}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give a file of name=value lines.") from None
