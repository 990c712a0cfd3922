"""`tieredctl restore …`: a cluster brought back on new nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path, kafka_id, pairs
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import ClusterId, DryRun, Topics, Yes
from tieredctl.cli.places import RemoteOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.model.findings import Severity
from tieredctl.ops.backup.sets import CLUSTER_ID
from tieredctl.ops.restore.cluster_of_keys import MOST_PARTITIONS
from tieredctl.ops.restore.placement import NewNode
from tieredctl.ops.restore.restore_plan import RestoreOutcome, RestorePlan
from tieredctl.ops.restore.restored_logs import RestoredLogRow
from tieredctl.wiring.places import StorePlace
from tieredctl.wiring.restore import Restore, restore
from tieredctl.wiring.restore_sources import BackupSource, KeysSource, RestoreSource

_NODE = re.compile(r"([0-9]{1,10})(?:=(.+))?", re.DOTALL)
_BEGINNING = re.compile(r"([A-Za-z0-9._-]{1,249}):([0-9]{1,10})=([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RestoreOptions(OptionGroup):
    """The set, or that there is none, the nodes and the topics that are meant."""

    node: Annotated[
        list[str],
        typer.Option(
            metavar="ID[=DIR[,DIR]]",
            help="A node and its new, empty log directories, that with the cluster's metadata first; without DIR, one "
            "on another machine. Repeat it for several.",
        ),
    ]
    metadata_log_dir: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID=DIR",
            help="A node's new folder for the cluster's metadata, if none of its log directories has it; repeat it "
            "for several.",
        ),
    ] = None
    source: Annotated[str | None, typer.Option("--from", metavar="URL", help="Where `backup run` wrote its sets.")] = (
        None
    )
    source_option: Annotated[
        list[str] | None,
        typer.Option("--from-option", metavar="NAME=VALUE", help="A setting of --from; repeat it for several."),
    ] = None
    set_: Annotated[int | None, typer.Option("--set", metavar="NUMBER", help="This set, instead of the newest.")] = None
    identity: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=given_path,
            help="Bring back the set's encrypted secrets with this private key (PEM).",
        ),
    ] = None
    topic: Topics = None
    begin_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC:PARTITION=OFFSET",
            help="Where a log begins of which nothing is known; repeat it for several.",
        ),
    ] = None

    without_backup: Annotated[
        bool, typer.Option("--without-backup", help="There is no set: take what the keys of the store's objects say.")
    ] = False
    metadata_partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=MOST_PARTITIONS,
            help="How many partitions brokers are configured to expect of the metadata topic, without a backup.",
        ),
    ] = None
    use_topic_id: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=ID", help="The id that counts of a recreated topic, without a backup; repeat it for several."
        ),
    ] = None
    controller: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="A node that is no broker, without a backup; repeat it for several."),
    ] = None
    accept_unknown: Annotated[
        bool, typer.Option("--accept-unknown", help="Go on without a backup: what it would say is lost.")
    ] = False

    def of(self, cluster_id: str | None) -> RestoreSource:
        """What says how the cluster was. Raises TieredctlError `usage` where not exactly one does, for options of the
        other, and where one of its own is lacking."""
        if self.without_backup:
            return self._keys(cluster_id)
        if self.source is None:
            message = "No backup set was given."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give --from; or, if there is none, --without-backup.")
        lost = {
            "--metadata-partitions": self.metadata_partitions,
            "--use-topic-id": self.use_topic_id,
            "--controller": self.controller,
            "--accept-unknown": self.accept_unknown,
        }
        _demand_none(lost, "needs --without-backup: a set says it")
        sets = StorePlace(self.source, pairs("--from-option", self.source_option))
        return BackupSource(sets, cluster_id, self.set_, self.identity)

    def _keys(self, cluster_id: str | None) -> KeysSource:
        sets = {
            "--from": self.source,
            "--from-option": self.source_option,
            "--set": self.set_,
            "--identity": self.identity,
        }
        _demand_none(sets, "cannot be combined with --without-backup")
        if self.metadata_partitions is None:
            message = "Without a backup, nothing says how many partitions the metadata topic had."
            hint = (
                "Give --metadata-partitions with what brokers are configured with "
                "(remote.log.metadata.topic.num.partitions, 50 by default): with another count they exit at startup."
            )
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message, hint=hint)
        if cluster_id is None:
            message = "Without a backup, nothing says which id the cluster had."
            hint = "Give the one that it had with --cluster-id, or a new one of `kafka-storage.sh random-uuid`."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if re.fullmatch(CLUSTER_ID, cluster_id, re.ASCII) is None:
            raise TieredctlError(ErrorCode.USAGE, f"--cluster-id {cluster_id!r} is not one that a cluster can have.")
        ids = {topic: kafka_id(one) for topic, one in pairs("--use-topic-id", self.use_topic_id).items()}
        controllers = frozenset(self.controller or ())
        strangers = sorted(controllers.difference(one.node_id for one in self.nodes()))
        if strangers:
            raise TieredctlError(ErrorCode.USAGE, f"--controller {strangers[0]} is not among the nodes.", hint=_EACH)
        return KeysSource(cluster_id, self.metadata_partitions, ids, controllers, self.accept_unknown)

    def nodes(self) -> list[NewNode]:
        """Raises TieredctlError `usage` for what is not ID, ID=DIR or ID=DIR,DIR, for a node that is given twice, and
        for a folder that is given twice or lies within another."""
        nodes = [_node(text) for text in self.node]
        own = [_metadata_folder(text) for text in self.metadata_log_dir or ()]
        folders = [one.resolve() for node in [*nodes, *own] for one in node.folders]
        if any(len({one.node_id for one in some}) != len(some) for some in (nodes, own)) or _are_nested(folders):
            message = "A node, or a folder, is given twice with --node, or a folder within another."
            raise TieredctlError(ErrorCode.USAGE, message)
        metadata_folders = {one.node_id: one.folders[0] for one in own}
        strangers = metadata_folders.keys() - {one.node_id for one in nodes if one.folders}
        if strangers:
            message = f"--metadata-log-dir {min(strangers)}=DIR is of a node without a folder on this machine."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give its log directories with --node ID=DIR.")
        return [one._replace(metadata_folder=metadata_folders.get(one.node_id)) for one in nodes]

    def beginnings(self) -> dict[tuple[str, int], int]:
        """Raises TieredctlError `usage` for what is not TOPIC:PARTITION=OFFSET."""
        matches = [(text, _BEGINNING.fullmatch(text)) for text in self.begin_at or ()]
        for text, match in matches:
            if match is None:
                raise TieredctlError(ErrorCode.USAGE, f"--begin-at {text!r} is not TOPIC:PARTITION=OFFSET.")
        return {(match[1], int(match[2])): int(match[3]) for _, match in matches if match is not None}


def _demand_none(given: Mapping[str, object], why: str) -> None:
    for option, value in given.items():
        if value is not None and value is not False:
            raise TieredctlError(ErrorCode.USAGE, f"{option} {why}.")


def _node(text: str) -> NewNode:
    match = _NODE.fullmatch(text)
    folders = () if match is None or match[2] is None else match[2].split(",")  # as Kafka reads log.dirs
    if match is None or int(match[1]) >= 1 << 31 or not all(one.strip() for one in folders):
        raise TieredctlError(ErrorCode.USAGE, f"--node {text!r} is not ID=DIR.", hint="Several are ID=DIR,DIR.")
    return NewNode(int(match[1]), tuple(Path(one.strip()) for one in folders))


def _metadata_folder(text: str) -> NewNode:
    match = _NODE.fullmatch(text)
    if match is None or match[2] is None or not match[2].strip():
        raise TieredctlError(ErrorCode.USAGE, f"--metadata-log-dir {text!r} is not ID=DIR.")
    return NewNode(int(match[1]), (Path(match[2].strip()),))


def _are_nested(folders: Sequence[Path]) -> bool:
    return any(one.is_relative_to(other) for one, other in permutations(folders, 2))


def plan(
    *, options: RestoreOptions, remote: RemoteOptions, cluster_id: ClusterId = None, view: ProgressView
) -> ExitCode:
    """Show what would come back of a cluster, and which offsets are lost; change nothing.

    Exit 3 if offsets are lost, 5 if nothing says where a partition's log went on.

    For example: tieredctl restore plan --from s3://backups/kafka --store s3://tiered --node 1=/var/lib/kafka/data
    """
    with _restore(options, remote, cluster_id) as restoration:
        view.say(*_sentences(restoration))
        return view.plan("RestorePlan", restoration.plan, RestoredLogRow, _code(restoration.plan))


def apply(
    *,
    options: RestoreOptions,
    remote: RemoteOptions,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    view: ProgressView,
) -> ExitCode:
    """Write the log directories of a cluster's new nodes: the same topics and ids, their logs empty at the end of
    remote storage. Never run it while the old cluster lives: both would own the same objects.

    Exit 3 and 5 as of `plan`, once everything is written.

    For example: tieredctl restore apply --from s3://backups/kafka --store s3://tiered --node 1=/var/lib/kafka/data
    """
    with _restore(options, remote, cluster_id) as restoration:
        shown = restoration.plan
        view.say(*_sentences(restoration))
        if not shown.nodes_here():
            raise TieredctlError(ErrorCode.USAGE, "No node has a folder on this machine.", hint="Give --node ID=DIR.")
        shown.demand_applicable()
        if dry_run:
            return _end(shown, RestoreOutcome(planned=len(shown.nodes_here())), view, dry_run=True)
        view.say(*_some("Lost", [_lost(one) for one in shown.rows() if one.lost]))
        view.say(
            *_some(
                "Found",
                [f"{one.subject}: {one.message}" for one in shown.findings() if one.severity is not Severity.INFO],
            )
        )
        what = f"Writing {counted(len(shown.nodes_here()), 'node')} of a cluster that no longer runs"
        demand_confirmation(what, shown.manifest.cluster_id, yes=yes, typed_cluster_id=cluster_id)
        outcome = restoration.apply()
    code = _end(shown, outcome, view, dry_run=False)
    then = "status, verify, and new passwords" if shown.summary()["leftOut"] else "status and verify"
    view.say(f"Start the nodes with the properties that they had. Then: tieredctl {then}.")
    return code


def _end(shown: RestorePlan, outcome: RestoreOutcome, view: ProgressView, *, dry_run: bool) -> ExitCode:
    ended = shown.summary() | outcome.counts() | {"applied": not dry_run, "dryRun": dry_run}
    listing = result_listing("Restore", shown.source(), RestoredLogRow, shown.rows(), ended)
    return worst(view.end(listing, outcome, shown.findings()), _code(shown))


def _restore(options: RestoreOptions, remote: RemoteOptions, cluster_id: str | None) -> AbstractContextManager[Restore]:
    return restore(
        options.of(cluster_id),
        remote.place(),
        options.nodes(),
        topics=options.topic or (),
        begin_at=options.beginnings(),
    )


def _code(shown: RestorePlan) -> ExitCode:
    summary = shown.summary()
    if summary["unknown"] or summary["unread"]:
        return ExitCode.INCOMPLETE
    return ExitCode.FINDINGS if summary["lostOffsets"] else ExitCode.CLEAN


def _sentences(restoration: Restore) -> Iterator[str]:
    shown = restoration.plan
    summary = shown.summary()
    if restoration.newer_sets:
        yield f"Set {shown.manifest.number} is not the newest: there are {restoration.newer_sets} after it."
    yield from _some("Unknown" if shown.is_without_backup else "Not in the set", shown.manifest.unread)
    yield from _some("To be given again", summary["leftOut"])
    if shown.secrets is None and shown.manifest.encrypted:
        those = counted(len(shown.manifest.encrypted), "secret")
        yield f"Encrypted: {those} of these are in the set; --identity brings them back."
    yield from _some("Comes back", [one.sentence for one in shown.secrets or ()])
    back = f"{counted(summary['segments'], 'segment')} of {counted(summary['partitions'], 'partition')}"
    lost = f"{counted(summary['lostOffsets'], 'offset')} in the ranges below, and whatever was on disks alone"
    if shown.is_without_backup:
        yield f"What comes back: {back}, with the names and ids that their keys have."
        yield f"Lost: {lost}; how much that was is unknown."
    else:
        yield f"What comes back: {back}, {summary['recovered']} of them copied after the set was made."
        yield f"Lost: {lost} after the set was made."
    if len(shown.nodes_here()) < len(shown.nodes):
        yield f"Mark of this plan: {shown.mark[:_MARK]}. Start no node of a machine that shows another."


def _lost(row: RestoredLogRow) -> str:
    ranges = ", ".join(f"{first} to {last}" for first, last in row.lost)
    return f"offsets {ranges} of {row.topic}-{row.partition}, which goes on at {row.next_offset}"


def _some(what: str, ones: Sequence[str]) -> Iterator[str]:
    yield from (f"{what}: {one}." for one in ones[:_SHOWN])
    if len(ones) > _SHOWN:
        yield f"{what}: {len(ones) - _SHOWN} more; -o json has all."


_SHOWN = 20
_MARK = 12
"""Characters of the plan's mark that people compare."""
_EACH = "Give each node of the cluster with --node."
_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("plan")(plan)
_commands.command("apply")(apply)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)
