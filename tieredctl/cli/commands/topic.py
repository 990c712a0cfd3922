"""`tieredctl topic …`: what is tiered on a live cluster, how much is where, how far tiering lags; and turning it on and
off.

`tieredctl topic disable`: KIP-950's ways out of tiered storage, after what each brings with it was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tieredctl.cli.arguments import now_ms
from tieredctl.cli.commands.topic_change import ApplyOptions, Shown, Topic, Waiting, describe_change, make
from tieredctl.cli.commands.topic_enable import enable
from tieredctl.cli.options import KraftSnapshot, LogDirs, Now, StuckAfter
from tieredctl.cli.outcome import finding_documents, say
from tieredctl.cli.output import Item
from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingListView, FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.model.result_row import camel_case
from tieredctl.ops.cluster.offline_cluster import ImageCluster
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.tiering.disable import MOST_SEGMENTS, DisablePlan, Form
from tieredctl.ops.tiering.topic_status import (
    ListedTopic,
    PartitionStatus,
    TieringAbility,
    TopicStatus,
    known_totals,
    remote_parts,
    topic_list,
    topic_status,
)
from tieredctl.ops.tiering.watching import Seen
from tieredctl.ports.cluster import Cluster
from tieredctl.wiring.places import ClusterPlace, MetadataPlace
from tieredctl.wiring.topic_change import topic_disabling
from tieredctl.wiring.topics_place import TopicsPlace

_ENDS = {Seen.YES: "Topic {name} has nothing left in remote storage."}
"""What to report when the wait ends in time."""


def disable(
    *,
    topic: Topic,
    cluster_options: ClusterOptions,
    stop_copying: Annotated[
        bool,
        typer.Option(
            "--stop-copying", help="Stop copying (remote.log.copy.disable); remote segments can still be read."
        ),
    ] = False,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="Stop tiering, and delete the remote segments (remote.log.delete.on.disable)."),
    ] = False,
    at_once: Annotated[
        bool,
        typer.Option(
            "--at-once", help=f"With --delete: let brokers delete more than {MOST_SEGMENTS} segments at once."
        ),
    ] = False,
    applying: ApplyOptions,
    view: FindingListView,
) -> ExitCode:
    """Stop copying a topic to remote storage, or stop tiering it and delete what it has there (KIP-950, since 3.9).

    Shows what would be deleted, which part of it exists nowhere else, and the local disk needed to keep that. --apply
    changes the settings in one request, and after --delete waits for the last deletion. Kafka keeps no remote data of a
    topic that is not tiered: to lose nothing, stop copying, let retention empty remote storage, then delete. Do so as
    well if much is in remote storage: brokers apply no cluster metadata while they delete.

    For example: tieredctl topic disable orders --stop-copying --bootstrap-server broker:9092
    """
    if stop_copying == delete:
        raise TieredctlError(ErrorCode.USAGE, "Give one of --stop-copying and --delete.")
    if at_once and not delete:
        raise TieredctlError(ErrorCode.USAGE, "--at-once is for --delete.")
    patience = applying.patience()
    form = Form.DELETE if delete else Form.STOP_COPYING
    place = cluster_options.place()
    with topic_disabling(place, topic, form, at_once=at_once) as disabling:
        plan, summary = disabling.plan, disabling.plan.summary()
        shown = Shown("TopicDisable", disabling.source, view)
        _say_plan(plan, shown)
        if not applying.is_made or plan.change.is_empty or plan.is_refused:
            return shown.plan(summary, plan, applying)
        applying.demand_confirmation(_what(plan), disabling.cluster_id)
        waiting = Waiting(patience, "segments are deleted", _ENDS)
        return shown.end(summary, plan, make(disabling, shown, waiting if delete and not applying.no_wait else None))


def _say_plan(plan: DisablePlan, shown: Shown) -> None:
    name = plan.change.topic.topic
    if plan.change.is_empty:
        is_off = "is no longer copied" if plan.was_tiered else "is not tiered"
        shown.say(f"Topic {name} {is_off}: nothing to change.")
        return
    shown.say(f"Topic {name}: {describe_change(plan.change)}")
    if plan.partitions:
        _say_effects(plan, shown)
    for number, step in enumerate(plan.steps, 1):
        shown.say(f"{number}. {step}")


def _say_effects(plan: DisablePlan, shown: Shown) -> None:
    summary = plan.summary()
    kept = "are deleted" if plan.form is Form.DELETE else "stay until their retention ends"
    shown.say(f"In remote storage: {_remote_amount(plan)}; they {kept}")
    for one in summary["brokers"]:
        free = "; free disk is unknown" if one["freeBytes"] is None else f"; {size_text(one['freeBytes'])} is free"
        needed = f"keeping locally what is only remote takes {(plan.local_bytes_needed or {})[one['brokerId']]}"
        shown.say(f"Broker {one['brokerId']}: {needed}{free}")


def _what(plan: DisablePlan) -> str:
    what = f"Changing topic {plan.change.topic.topic} ({describe_change(plan.change)})"
    if plan.form is Form.STOP_COPYING:
        return what
    doomed = _remote_amount(plan)
    return f"{what} and deleting {doomed} ({plan.only_remote_size} of it nowhere else)"


def _remote_amount(plan: DisablePlan) -> str:
    segments = sum(one.segments for one in plan.partitions)
    return f"{counted(segments, 'segment')}, {plan.remote_size}"


_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("enable")(enable)
_commands.command("disable")(disable)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


def _answered(name: str) -> Callable[[Item], object]:
    """A field of a partition, unknown where nobody told where its log ends."""
    return lambda item: "unknown" if item.get(name) is None and item.get("latest") is None else item.get(name)


_ANSWERED = {
    name: _answered(camel_case(name))
    for name in ("earliest", "earliest_local", "latest_tiered", "latest", "not_tiered", "lag_ms")
}


class _Opened(NamedTuple):
    cluster: Cluster
    stream: EventStream
    topics: TopicsPlace

    @property
    def findings(self) -> list[Finding]:
        """What makes its answers incomplete."""
        of_cluster = self.cluster.findings() if isinstance(self.cluster, ImageCluster) else ()
        return [*self.stream.findings, *of_cluster]

    @property
    def source(self) -> Document:
        """The metadata, and the metadata log that stands for a cluster that is down."""
        described = self.stream.source.describe()
        return described | {"cluster": self.cluster.describe()} if isinstance(self.cluster, ImageCluster) else described


@contextmanager
def _opened(options: ClusterOptions, kraft_snapshot: Path | None, log_dirs: Sequence[Path] | None) -> Iterator[_Opened]:
    """A live cluster with its metadata topic, or what is on the disks of one that is down."""
    place = options.place_or_snapshot(kraft_snapshot)
    if isinstance(place, ClusterPlace) and log_dirs:
        raise TieredctlError(ErrorCode.USAGE, "--log-dir is for --kraft-snapshot.", hint="Omit it with a live cluster.")
    metadata = MetadataPlace(cluster=place) if isinstance(place, ClusterPlace) else MetadataPlace(tuple(log_dirs or ()))
    with place.open() as cluster, metadata.open() as stream:
        demand_same_cluster(stream.source.cluster_id, cluster.cluster_id)
        yield _Opened(cluster, stream, TopicsPlace(cluster=place if isinstance(place, ClusterPlace) else None))


@_commands.command("list")
def list_topics(
    *,
    cluster_options: ClusterOptions,
    kraft_snapshot: KraftSnapshot = None,
    log_dir: LogDirs = None,
    every: Annotated[bool, typer.Option("--all", help="Include topics that are not tiered.")] = False,
    view: FindingsView,
) -> ExitCode:
    """List tiered topics, with their bytes in remote storage and on all brokers' disks.

    A topic is `unknown` if the user may not read its settings: exit 5.

    For example: tieredctl topic list --bootstrap-server broker:9092
    """
    with _opened(cluster_options, kraft_snapshot, log_dir) as opened, opened.topics.open(now_ms(None)) as topics:
        parts = remote_parts(opened.stream)
        rows, unseen = topic_list(opened.cluster, parts, every=every, lookup=topics.cluster)
    findings = [*opened.findings, *unseen]
    summary = {
        "topics": len(rows),
        **known_totals(rows, "remote_segments", "remote_bytes", "local_bytes", "unfinished"),
        "findings": finding_documents(findings),
    }
    listing = result_listing("Topics", opened.source, ListedTopic, rows, summary)
    return view.show(listing, findings)


@_commands.command("status")
def status(
    *,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    cluster_options: ClusterOptions,
    kraft_snapshot: KraftSnapshot = None,
    log_dir: LogDirs = None,
    older_than: StuckAfter = "1h",
    now: Now = None,
    view: FindingsView,
) -> ExitCode:
    """Show a topic's partitions: what is where, how far tiering lags, and what is stuck (exit 3).

    The summary of -o json has the settings, with the source of each.

    For example: tieredctl topic status orders --bootstrap-server broker:9092
    """
    with _opened(cluster_options, kraft_snapshot, log_dir) as opened:
        parts = remote_parts(opened.stream)
        of_topic = topic_status(opened.cluster, topic, parts, now_ms(now), duration_ms(older_than))
    findings = [*opened.findings, *of_topic.findings]
    summary = {**of_topic.summary(), "findings": finding_documents(findings)}
    listing = result_listing("TopicStatus", opened.source, PartitionStatus, of_topic.rows, summary, **_ANSWERED)
    if view.is_table and not view.quiet:
        say(_headline(of_topic))
    return view.show(listing, findings)


def _headline(of_topic: TopicStatus) -> str:
    settings = of_topic.summary()["settings"]
    sources = ("DEFAULT_CONFIG", "UNKNOWN")
    changed = [f"{name}={one['value']}" for name, one in settings.items() if one["source"] not in sources]
    is_known = all(one["source"] != "UNKNOWN" for one in settings.values())
    own = ", ".join(changed) or ("all settings are defaults" if is_known else "no settings of its own")
    return f"{of_topic.topic.topic} ({of_topic.topic.topic_id}): {own}{_unable(of_topic.ability)}"


def _unable(ability: TieringAbility) -> str:
    """A clause that names the nodes not set up for tiering, if any."""
    unable = (("brokers", ability.unable_brokers), ("controllers", ability.unable_controllers))
    return "".join(f"; not able to tier: {kind} {', '.join(map(str, nodes))}" for kind, nodes in unable if nodes)
