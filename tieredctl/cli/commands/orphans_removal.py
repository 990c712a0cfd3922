"""`tieredctl orphans apply|restore|purge`: a plan carried out, undone, and made final."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tieredctl.cli.arguments import clock_ms, duration_ms, given_path, kafka_id, objects_a_second, pairs, percentage
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
from tieredctl.cli.outcome import finish, say, say_error
from tieredctl.cli.output import Listing, OutputFormat, TableColumn, printable
from tieredctl.cli.progress import LinesApart
from tieredctl.cli.wiring import demand_topic_based_metadata, open_source, topic_sources
from tieredctl.config.plan_key import known_key
from tieredctl.errors import ExitCode, TieredctlError, worst
from tieredctl.layouts.protocol import AUTO
from tieredctl.layouts.registry import layout_in, layouts_installed
from tieredctl.model.findings import Finding
from tieredctl.model.removal import Receipt, ReceiptsHeader, ReceiptStep, RemovalMode
from tieredctl.storage.counting import CountingStore
from tieredctl.storage.registry import open_store, open_writable_store

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.removal.apply import RemovalResult
    from tieredctl.ops.removal.kept_versions import WhatStays
    from tieredctl.ops.removal.plan_file import PlanFile
    from tieredctl.ops.removal.purge import PurgeResult
    from tieredctl.ops.removal.receipts import Receipts
    from tieredctl.ops.removal.restore import RestoreResult
    from tieredctl.storage.protocol import ObjectStore, WritableObjectStore

DeleteVersions = Annotated[
    bool,
    typer.Option(
        "--delete-versions",
        help="In a bucket with versioning, also delete the versions that deleted objects leave, and delete markers.",
    ),
]
_IN_STORE = "store"
_COLUMNS = (TableColumn("STATUS", "status"), TableColumn("KEY", "key"), TableColumn("ERROR", "error"))
_FIELDS = ("key", "status", "size", "quarantineKey", "error")
_UNFINISHED = (ReceiptStep.COPIED, ReceiptStep.DELETING)
_WHICH_TOPICS = " Give --live-topic-ids or --kraft-snapshot to purge what topics left that are gone."
_PLAN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_MOST_LINES = 20
_TABLES = (OutputFormat.TABLE, OutputFormat.WIDE)


def apply(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", parser=given_path, help="What `orphans plan` wrote.")],
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    offline_metadata: OfflineMetadata = False,
    log_dir: LogDirs = None,
    export: Export = None,
    live_topic_ids: LiveTopicIds = None,
    kraft_snapshot: KraftSnapshot = None,
    store_option: StoreOptions = None,
    layout_option: LayoutOptions = None,
    receipts: Annotated[
        str | None,
        typer.Option(metavar="FILE|store", help="Where to record what is done; PLAN.receipts where nothing is said."),
    ] = None,
    min_age: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Remove nothing younger: 24h, or what your plan has."),
    ] = None,
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow a --min-age below 1h: only where nothing writes.")
    ] = False,
    max_percent: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            parser=percentage,
            help="Refuse to remove more of the store's objects: 10, or what your plan has.",
        ),
    ] = None,
    foreign: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC-ID", parser=kafka_id, help="Remove this foreign topic's objects, if planned."),
    ] = None,
    unknown: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Remove this object, if planned, that no layout explains.")
    ] = None,
    trust_plan: Annotated[
        bool, typer.Option("--trust-plan", help="Apply a plan that was not signed with your key.")
    ] = False,
    rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", parser=objects_a_second, help="So many objects a second at most.")
    ] = None,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    no_lease: NoLease = False,
    delete_versions: DeleteVersions = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Apply a plan, or resume an interrupted one: each object is checked once more before it goes.

    What the plan says of its objects counts for nothing: only what is orphaned now is removed, and of foreign and
    unknown objects what is named. Exit 5 if something was skipped, failed, or stopped it.
    """
    from tieredctl.ops.followed_metadata import FollowedMetadata
    from tieredctl.ops.removal.fresh_metadata import FreshMetadata
    from tieredctl.ops.removal.limits import GivenLimits, demand_signed, limits_of
    from tieredctl.ops.removal.pace import Pace
    from tieredctl.ops.removal.plan_file import read_plan
    from tieredctl.ops.removal.use import PlanUser

    chosen = read_plan(plan, known_key())
    header = chosen.header
    given_age_ms = None if min_age is None else duration_ms(min_age)
    given = GivenLimits(given_age_ms, max_percent, allow_young, frozenset(foreign or ()), frozenset(unknown or ()))
    limits = limits_of(chosen, given)
    if not (trust_plan or dry_run):
        demand_signed(chosen)
    elif not (chosen.is_signed or quiet):
        say(printable(f"{plan} was not signed with your key: its own limits and names count for nothing."))
    _demand_source(bootstrap_server, offline_metadata=offline_metadata, topics=live_topic_ids or kraft_snapshot)
    if not dry_run:
        what = f"The removal of {chosen.totals.objects} objects, {chosen.totals.bytes} bytes, from {header.store}"
        what += " for good" if header.mode is RemovalMode.DELETE else ""
        demand_confirmation(what, header.cluster_id, yes=yes, typed_cluster_id=cluster_id)
    store = CountingStore(_opened(header.store, store_option, dry_run=dry_run))
    demand_topic_based_metadata(log_dir, bootstrap_server, command_config)
    with topic_sources(live_topic_ids, kraft_snapshot, bootstrap_server, command_config) as topics:
        read = partial(open_source, log_dir, bootstrap_server, command_config, export)
        metadata = FreshMetadata(
            FollowedMetadata(read, header.cluster_id, header.metadata_end_offsets),
            layout=layout_in(store, header.layout, pairs("--layout-option", layout_option)),
            min_age_ms=limits.min_age_ms,
            topic_sources=topics,
            clock_ms=clock_ms,
        )
        place = _ReceiptPlace(receipts, plan, store)
        user = PlanUser(
            chosen,
            store,
            metadata,
            place.open,
            clock_ms,
            limits,
            layouts_installed(),
            pace=Pace(rate) if rate else lambda _: None,
            tell=_told(quiet),
            without_lease=no_lease,
            delete_versions=delete_versions,
        )
        result = user.rehearse() if dry_run else user.run()
    source = {"plan": str(plan), "planId": header.plan_id, "clusterId": header.cluster_id, "store": header.store}
    summary = _counts(result) | {"putBack": result.put_back, "lost": len(result.lost), "dryRun": dry_run}
    summary["requests"] = store.requests
    stays = _what_stays(store, result)
    summary["stays"] = stays.document()
    if not quiet:
        say(printable(_headline(chosen, result, place, dry_run=dry_run)))
        _say_all(stays)
    rows = () if dry_run else _rows(place.opened, output)
    listing = Listing("Removal", source, rows, _COLUMNS, summary, _FIELDS)
    findings = [_lost(key, header.store) for key in result.lost]
    incomplete = bool(result.failed or result.skipped or result.with_versions)
    return _end(listing, output, findings, result.stopped, incomplete, quiet=quiet, metrics_file=metrics_file)


def restore(
    receipts: Annotated[
        str, typer.Argument(metavar="RECEIPTS", help="The file of receipts, or the plan's id with --store.")
    ],
    store: Store = None,
    store_option: StoreOptions = None,
    no_lease: NoLease = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Put back what a plan removed, from its quarantine: exit 5 if something could not be."""
    from tieredctl.ops.removal.restore import Restore

    opened_store, opened, are_lost = _receipts_to_restore(receipts, store, store_option)
    result = Restore(opened_store, opened, clock_ms, no_lease).run()
    header = opened.header
    source = {"receipts": receipts, "planId": header.plan_id, "clusterId": header.cluster_id, "store": header.store}
    if not quiet:
        said = f"Put back {result.done} of {result.planned} objects, {result.bytes} bytes, in {header.store}."
        say(printable(f"{said} It was done without receipts: the store has none of this plan." if are_lost else said))
    for damage in result.damaged[:_MOST_LINES]:
        say(printable(f"{damage}: what it told of is put back if it is in quarantine."))
    if len(result.damaged) > _MOST_LINES:
        say(f"… and {len(result.damaged) - _MOST_LINES} more lines of receipts that cannot be read.")
    summary = _counts(result) | {"damagedReceipts": len(result.damaged), "receiptsLost": are_lost}
    listing = Listing("Restoration", source, _rows(opened, output), _COLUMNS, summary, _FIELDS)
    incomplete = bool(result.failed or result.damaged)
    return _end(listing, output, (), result.stopped, incomplete, quiet=quiet, metrics_file=metrics_file)


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
    from tieredctl.ops.followed_metadata import FollowedMetadata
    from tieredctl.ops.removal.fresh_metadata import FreshMetadata
    from tieredctl.ops.removal.purge import LEAST_AGE_MS, Purge

    if store is None:
        raise TieredctlError("no-store", "There is no store to empty the quarantine of.")
    if duration_ms(older_than) < LEAST_AGE_MS and not allow_young:
        message = "What has been in quarantine for less than an hour is not deleted for good."
        raise TieredctlError("age-too-low", message, hint="Give an --older-than of 1h or more, or --allow-young.")
    _demand_source(bootstrap_server, offline_metadata=offline_metadata, topics=live_topic_ids or kraft_snapshot)
    read = partial(open_source, log_dir, bootstrap_server, command_config, export)
    demand_topic_based_metadata(log_dir, bootstrap_server, command_config)
    known_cluster_id = read().describe().get("clusterId") or cluster_id
    if not isinstance(known_cluster_id, str):
        raise TieredctlError("usage", "The metadata does not tell which cluster it is of.", hint="Give --cluster-id.")
    if not dry_run:
        what = f"The deletion for good of what has been in the quarantine of {store} for {older_than}"
        demand_confirmation(what, known_cluster_id, yes=yes, typed_cluster_id=cluster_id)
    opened = _opened(store, store_option, dry_run=dry_run)
    with topic_sources(live_topic_ids, kraft_snapshot, bootstrap_server, command_config) as topics:
        metadata = FreshMetadata(
            FollowedMetadata(read, known_cluster_id),
            layout=layout_in(opened, layout, pairs("--layout-option", layout_option)),
            min_age_ms=0,
            topic_sources=topics,
            clock_ms=clock_ms,
        )
        age_ms = duration_ms(older_than)
        purging = Purge(opened, metadata, known_cluster_id, age_ms, clock_ms, no_lease, max_percent, delete_versions)
        result = purging.rehearse() if dry_run else purging.run()
    stays = _what_stays(opened, result)
    if not quiet:
        verb = "Would delete" if dry_run else "Deleted"
        done = result.planned - result.skipped if dry_run else result.done
        for_good = "" if stays.may_stay else " for good"
        said = f"{verb} {done} of {result.planned} objects in the quarantine of {opened.url}{for_good}."
        say(printable(said))
        _say_all(stays)
        if result.unproven:
            unproven = f"{result.unproven} more copies were kept: nothing tells which cluster they are of."
            say(f"{unproven} Put them back with `tieredctl orphans restore`, or delete them yourself.")
        if unclear := result.skipped - len(result.owned):
            hint = "" if live_topic_ids or kraft_snapshot or bootstrap_server else _WHICH_TOPICS
            say(f"{unclear} copies were kept: what they are copies of has an owner, or may have one.{hint}")
    source = {"clusterId": known_cluster_id, "store": opened.url}
    kept = {"unproven": result.unproven, "stays": stays.document()}
    listing = Listing("Purge", source, (), (), _counts(result) | kept | {"dryRun": dry_run}, _FIELDS)
    findings = [_lost(key, opened.url) for key in result.owned]
    has_versions = result.versions is not None and result.versions.failed
    incomplete = bool(result.failed or result.skipped or result.unproven or has_versions)
    return _end(listing, output, findings, result.stopped, incomplete, quiet=quiet, metrics_file=metrics_file)


def _what_stays(store: ObjectStore, result: RemovalResult | PurgeResult) -> WhatStays:
    from tieredctl.ops.removal.kept_versions import WhatStays, retention_of

    return WhatStays(retention_of(store), result.done, result.bytes, result.versions)


def _say_all(stays: WhatStays) -> None:
    for sentence in stays.sentences():
        say(printable(sentence))


class _ReceiptPlace:
    """Where the receipts of a plan are to be."""

    def __init__(self, named: str | None, plan: Path, store: WritableObjectStore) -> None:
        self._in_store = named == _IN_STORE
        self._file = given_path(named) if named is not None else plan.with_name(plan.name + ".receipts")
        self._store = store
        self.opened: Receipts | None = None

    def open(self, header: ReceiptsHeader, must_exist: bool) -> Receipts:
        from tieredctl.ops.removal.receipts import ReceiptFile, StoredReceipts

        if self._in_store:
            self.opened = StoredReceipts.begun(self._store, header)
        elif must_exist and not self._file.exists():
            message = f"A run of this plan left receipts, but not in {self._file}."
            raise TieredctlError("receipts-missing", message)
        else:
            self.opened = ReceiptFile.begun(self._file, header)
        return self.opened


def _demand_source(bootstrap_server: str | None, *, offline_metadata: bool, topics: Path | None = None) -> None:
    """Objects are only deleted by what a cluster says now, or by what one that is no more said last."""
    if bootstrap_server is None and not offline_metadata:
        message = "Objects are removed by what the live cluster says: give --bootstrap-server."
        hint = "For a cluster that is no more, give --offline-metadata with --log-dir or --export."
        raise TieredctlError("no-source", message, hint=hint)
    if bootstrap_server is not None and (offline_metadata or topics):
        raise TieredctlError("usage", "A live cluster is asked itself: leave the offline options out.")


def _opened(url: str, store_option: Sequence[str] | None, *, dry_run: bool) -> WritableObjectStore:
    options = pairs("--store-option", store_option)
    # Nothing is written in a rehearsal, which takes the same type.
    return cast("WritableObjectStore", open_store(url, options)) if dry_run else open_writable_store(url, options)


def _receipts_to_restore(
    named: str, store: str | None, store_option: Sequence[str] | None
) -> tuple[WritableObjectStore, Receipts, bool]:
    """The store, the receipts, and whether those that the plan left are lost."""
    from tieredctl.ops.removal.receipts import ReceiptFile, StoredReceipts
    from tieredctl.ops.removal.restore import receipts_from_quarantine

    options = pairs("--store-option", store_option)
    if store is None:
        receipts = ReceiptFile.opened(given_path(named))
        return open_writable_store(receipts.header.store, options), receipts, False
    if _PLAN_ID.fullmatch(named) is None and not Path(named).is_file():
        hint = "Leave --store out for a file of receipts."
        raise TieredctlError("usage", f"{named!r} is not a plan's id.", hint=hint)
    if Path(named).is_file():
        raise TieredctlError("usage", f"The receipts in {named} name their store.", hint="Leave --store out.")
    opened = open_writable_store(store, options)
    try:
        return opened, StoredReceipts.opened(opened, named), False
    except TieredctlError as error:
        if error.kind.code not in ("path-missing", "receipts-damaged"):
            raise
        return opened, receipts_from_quarantine(opened, named), True


def _told(quiet: bool) -> Callable[[RemovalResult], None]:
    lines = LinesApart()

    def tell(result: RemovalResult) -> None:
        if not quiet and lines.is_due():
            say(f"{result.done} of {result.planned} removed, {result.bytes} bytes")

    return tell


def _rows(receipts: Receipts | None, output: OutputFormat) -> list[dict[str, object]]:
    """What became of each object; tables have only what is not done."""
    from tieredctl.ops.removal.receipts import last_receipts

    shown = last_receipts(receipts.entries(lambda _damage: None)).values() if receipts else []
    if output in _TABLES:
        wanted = (ReceiptStep.FAILED, ReceiptStep.GONE, *_UNFINISHED)
        return [_row(receipt) for receipt in shown if receipt.step in wanted]
    return list(map(_row, shown))


def _row(receipt: Receipt) -> dict[str, object]:
    return {
        "key": receipt.key,
        "status": "unfinished" if receipt.step in _UNFINISHED else receipt.step.value,
        "size": receipt.size,
        "quarantineKey": receipt.copy and receipt.copy.key,
        "error": receipt.error,
    }


def _counts(result: RemovalResult | RestoreResult | PurgeResult) -> dict[str, object]:
    return {
        "planned": result.planned,
        "done": result.done,
        "failed": result.failed,
        "skipped": result.skipped,
        "bytes": result.bytes,
        "stopped": result.stopped and result.stopped.kind.code,
    }


def _headline(plan: PlanFile, result: RemovalResult, place: _ReceiptPlace, *, dry_run: bool) -> str:
    if dry_run:
        verdict = "not as planned any more" if result.stopped else "still as planned"
        return f"{plan.totals.objects} objects, {plan.totals.bytes} bytes, are {verdict}; nothing was changed."
    what = f"Removed {result.done} of {result.planned}, {result.bytes} bytes, from {plan.header.store}."
    if plan.header.mode is RemovalMode.DELETE or place.opened is None:
        return what
    where = "" if place.opened.where != plan.header.plan_id else f" --store {plan.header.store}"
    return f"{what} Undo with: tieredctl orphans restore {place.opened.where}{where}"


def _lost(key: str, store: str) -> Finding:
    message = "it was removed, and a segment that brokers may read has it now"
    return Finding("object-missing", f"{store}/{key}", message, {"key": key})


def _end(
    listing: Listing,
    output: OutputFormat,
    findings: Iterable[Finding],
    stopped: TieredctlError | None,
    incomplete: bool,
    *,
    quiet: bool,
    metrics_file: Path | None,
) -> ExitCode:
    code = ExitCode.INCOMPLETE if incomplete else ExitCode.CLEAN
    if stopped is not None:
        code = worst(code, stopped.exit_code)
    code = worst(code, finish(listing, output, list(findings), quiet=quiet, metrics_file=metrics_file, otherwise=code))
    if stopped is not None:
        say_error(stopped)
    return code
